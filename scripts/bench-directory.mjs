/**
 * `npm run bench:directory`: measures whether the directory service's cost grows with the directory, how it compares
 * with its peer, and whether its webhooks keep up. Exits with 1 when a target is missed. --write updates
 * docs/benchmarks-directory.md.
 */
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { creates } from './bench/directory/creates.mjs'
import { peerSizes } from './bench/directory/peer-sizes.mjs'
import { sizes } from './bench/directory/sizes.mjs'
import { webhooks } from './bench/directory/webhooks.mjs'
import { writePage } from './bench/page.mjs'
import { require } from './bench/processes.mjs'
import { Failure, say, script } from './lib/run.mjs'

const PARTS = { sizes, 'peer-sizes': peerSizes, creates, webhooks }
const { values: options } = parseArgs({
  options: {
    parts: { type: 'string', default: Object.keys(PARTS).join(',') },
    size: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '4' },
    write: { type: 'boolean', default: false },
  },
})

await script(async () => {
  if (process.platform !== 'linux' || cpus().length < 2)
    throw new Failure('The benchmark needs Linux and two cores.')
  require('taskset')
  const names = options.parts.split(',')
  const unknown = names.find(name => !Object.hasOwn(PARTS, name))
  if (unknown !== undefined)
    throw new Failure(`There is no part ${unknown}; there are ${Object.keys(PARTS).join(', ')}.`)
  const { size, rounds, seconds } = options
  const sections = []
  for (const name of names) {
    const section = await PARTS[name]({
      size: Number(size),
      rounds: Number(rounds),
      seconds: Number(seconds),
    })
    sections.push(section)
    console.log(`## ${section.title}\n\n${section.text}\n`)
    if (section.kept) continue
    say(`${name}: the aim was missed`)
    process.exitCode = 1
  }
  if (options.write)
    writePage({
      page: 'benchmarks-directory.md',
      title: 'Benchmarks of the directory service',
      notes: 'notes-directory.md',
      how: `creates in ${rounds} rounds of ${seconds} s, medians`,
      sections,
    })
})
