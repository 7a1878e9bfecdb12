/**
 * `npm run chaos [-- --short --only 'cluster / reset']`: injects faults into real components and compares the results
 * with what is promised. The long form writes docs/faults.md, or only the rows that `--only` names; the short form runs
 * some of the cells, two parts at a time, in about a minute. Fails when a promise is broken or a gateway process has
 * warned.
 */
import { parseArgs } from 'node:util'
import { memorySections } from './chaos/memory.mjs'
import { mongoSections } from './chaos/mongodb.mjs'
import { updateFaults, writeFaults } from './chaos/page.mjs'
import { receiverSections } from './chaos/receivers.mjs'
import { redisParts } from './chaos/redis.mjs'
import { upstreamSections } from './chaos/upstreams.mjs'
import { Failure, onPath, say, script } from './lib/run.mjs'

const { values } = parseArgs({
  options: { short: { type: 'boolean', default: false }, only: { type: 'string' } },
})
const { short, only } = values
const PARTS = [...redisParts, mongoSections, upstreamSections, receiverSections, memorySections]
/** The figures on the page are measured with nothing else running. */
const atOnce = short ? 2 : 1

await script(async () => {
  for (const name of ['redis-server', 'openssl'])
    if (!onPath(name)) throw new Failure(`The matrix of faults needs ${name}: apt-get install ${name}`)
  // Ends through the exit handlers, which stop every child process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
  process.setMaxListeners(50)
  const chosen = { short, wants: cell => only === undefined || cell.includes(only) }
  const found = []
  const left = PARTS.entries()
  const lane = async () => {
    for (const [i, part] of left) found[i] = await part(chosen)
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
  const sections = found.flat()
  const rows = sections.flatMap(section => section.rows)
  const failed = rows.filter(({ cells }) => cells.some(({ isKept }) => !isKept))
  const broken = failed.filter(({ isUnknown }) => !isUnknown)
  if (!short && only === undefined) writeFaults(sections)
  else if (!short) updateFaults(sections)
  const unknown = failed.length - broken.length
  say(`${rows.length - failed.length} faults kept their promises, ${broken.length} broke one`)
  if (unknown > 0) say(`of ${unknown} nothing can be said: the machine was too busy`)
  if (rows.length === 0) throw new Failure(`No cell is called ${only}`)
  if (broken.length > 0) throw new Failure('See the lines that begin with BROKEN')
})
