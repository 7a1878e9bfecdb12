/**
 * `npm run chaos [-- --short --only 'cluster / reset']`: injects faults into real components and compares the results
 * with what is promised. The long form writes docs/faults.md, or only the rows that `--only` names; the short form runs
 * some of the cells, two parts at a time, in about a minute. Fails when a promise is broken or a gateway process has
 * warned.
 */
import { parseArgs } from 'node:util'
import { http2Sections } from './chaos/http2.js'
import { memorySections } from './chaos/memory.js'
import { mongoSections } from './chaos/mongodb.js'
import { updateFaults, writeFaults } from './chaos/page.js'
import { receiverSections } from './chaos/receivers.js'
import { redisParts } from './chaos/redis.js'
import type { Chosen, Section } from './chaos/row.js'
import { upstreamSections } from './chaos/upstreams.js'
import { Failure, onPath, say, script } from './lib/run.mjs'

const { values } = parseArgs({
  options: { short: { type: 'boolean', default: false }, only: { type: 'string' } },
})
const { short, only } = values
const PARTS = [
  ...redisParts,
  mongoSections,
  upstreamSections,
  receiverSections,
  http2Sections,
  memorySections,
]
/** The figures on the page are measured with nothing else running. */
const atOnce = short ? 2 : 1

await script(async () => {
  for (const name of ['redis-server', 'openssl'])
    if (!onPath(name)) throw new Failure(`The matrix of faults needs ${name}: apt-get install ${name}`)
  process.setMaxListeners(50)
  const chosen: Chosen = { short, wants: cell => only === undefined || cell.includes(only) }
  const found: Section[][] = []
  const left = PARTS.entries()
  const runParts = async () => {
    for (const [i, part] of left) found[i] = await part(chosen)
  }
  await Promise.all(Array.from({ length: atOnce }, runParts))
  const sections = found.flat()
  const rows = sections.flatMap(section => section.rows)
  const failed = rows.filter(({ cells }) => cells.some(({ holds }) => !holds))
  const broken = failed.filter(({ isUnknown }) => !isUnknown)
  if (!short && only === undefined) writeFaults(sections)
  else if (!short) updateFaults(sections)
  const unknown = failed.length - broken.length
  say(`${rows.length - failed.length} faults kept their promises, ${broken.length} broke one`)
  if (unknown > 0) say(`of ${unknown} nothing can be said: the machine was too busy`)
  if (rows.length === 0) throw new Failure(`No cell is called ${only}`)
  if (broken.length > 0) throw new Failure('See the lines that begin with BROKEN')
})
