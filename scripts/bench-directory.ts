/**
 * `npm run bench:directory`: measures whether the directory service's cost grows with the directory, how it compares
 * with its peer, and whether its webhooks keep up. Exits with 1 when a target is missed. --write updates
 * docs/benchmarks-directory.md. `--parts forms` measures the forms of the identity service (docs/forms.md) instead.
 */
import { parseArgs } from 'node:util'
import { creates } from './bench/directory/creates.js'
import { forms } from './bench/directory/forms.js'
import type { Part } from './bench/directory/part.js'
import { peerSizes } from './bench/directory/peer-sizes.js'
import { sizes } from './bench/directory/sizes.js'
import { webhooks } from './bench/directory/webhooks.js'
import { needs, needsTwoCores } from './bench/machine.js'
import { writePage } from './bench/page.js'
import { Failure, say, script } from './lib/run.mjs'

const OF_PAGE: Record<string, Part> = { sizes, 'peer-sizes': peerSizes, creates, webhooks }
const PARTS: Record<string, Part> = { ...OF_PAGE, forms }
const { values: options } = parseArgs({
  options: {
    parts: { type: 'string', default: Object.keys(OF_PAGE).join(',') },
    size: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '4' },
    write: { type: 'boolean', default: false },
  },
})

await script(async () => {
  needsTwoCores()
  needs('taskset')
  const names = options.parts.split(',')
  const unknown = names.find(name => !Object.hasOwn(PARTS, name))
  if (unknown !== undefined)
    throw new Failure(`There is no part ${unknown}; there are ${Object.keys(PARTS).join(', ')}.`)
  const { size, rounds, seconds } = options
  const settings = { size: Number(size), rounds: Number(rounds), seconds: Number(seconds) }
  const sections = []
  for (const name of names) {
    const section = await (PARTS[name] as Part)(settings)
    sections.push(section)
    console.log(`## ${section.title}\n\n${section.text}\n`)
    if (section.isReached) continue
    say(`${name}: the aim was missed`)
    process.exitCode = 1
  }
  if (!options.write) return
  const how = `creates in ${rounds} rounds of ${seconds} s, medians`
  const about = { page: 'benchmarks-directory.md', title: 'Benchmarks of the directory service' }
  writePage({ ...about, notes: 'notes-directory.md', how, sections })
})
