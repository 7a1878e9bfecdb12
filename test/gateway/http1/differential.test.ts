/**
 * Our parser of HTTP/1.1 compared with Node's: either ours rejects the bytes, or both read the same messages, field by
 * field and byte by byte, however the bytes are cut. `npm run fuzz -- --messages 100000` is the long run.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import * as nodes from './oracle/nodes.js'
import * as ours from './oracle/ours.js'
import { disagreement, type Reading } from './oracle/reading.js'
import { answers, type Played, requests } from './oracle/spell.js'

const MESSAGES = Number(process.env.MESSAGES ?? 2000)
const SEED = Number(process.env.SEED ?? 1)
/** Longer texts are cut in only some places, else a long run would do little else. */
const CUT_EVERYWHERE = 120

t.setTimeout(60_000 + MESSAGES * 10)

interface Counts {
  taken: number
  refusedByBoth: number
  refusedByUs: number
}

const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1')

function pieces(text: string, cuts: readonly number[]): Buffer[] {
  const edges = [0, ...cuts, text.length]
  return edges.slice(1).map((edge, i) => bytesOf(text.slice(edges[i], edge)))
}

/** Fails unless our result is the same for all cuts: into single bytes, and into two pieces cut anywhere. */
function sameHoweverCut({ text, cuts }: Played, whole: Reading, read: (pieces: Buffer[]) => Reading): void {
  const expected = summary(whole)
  const ways = [cuts, Array.from({ length: text.length }, (_, i) => i)]
  if (text.length <= CUT_EVERYWHERE) for (let at = 1; at < text.length; at++) ways.push([at])
  for (const way of ways) {
    const seen = summary(read(pieces(text, way)))
    if (seen !== expected) throw new Error(`cut at ${way.slice(0, 5)}: ${seen} instead of ${expected}`)
  }
}

const summary = ({ messages, refused }: Reading): string => JSON.stringify([messages, refused])

/**
 * Fails when we wait for more of a body that Node has rejected. We look at trailers only once all of them have arrived,
 * so the end of the trailers must make us reject as well.
 */
function waitsForNothing({ text }: Played, own: Reading, other: Reading): void {
  const begun = own.messages.at(-1)?.complete === false
  if (!begun || own.refused !== undefined || other.refused === undefined || other.over) return
  const { refused } = ours.readRequests([bytesOf(`${text}\r\n\r\n`)])
  if (refused === undefined) throw new Error(`waits, where Node has refused: ${other.refused}`)
}

function count(counts: Counts, own: Reading, other: Reading): void {
  if (own.refused === undefined) counts.taken++
  else if (other.refused !== undefined) counts.refusedByBoth++
  else counts.refusedByUs++
}

/** Reports the counts in two assertions, so that a generator that makes only rubbish is noticed. */
function enough(t: Test, counts: Counts): void {
  t.comment(JSON.stringify(counts))
  t.ok(counts.taken > MESSAGES / 10, 'enough messages were accepted for the comparison to mean something')
  t.ok(
    counts.refusedByBoth > MESSAGES / 20,
    'enough messages were refused for the comparison to mean something',
  )
}

t.test('a request is read as Node reads it, or refused', async t => {
  const counts: Counts = { taken: 0, refusedByBoth: 0, refusedByUs: 0 }
  const property = fc.asyncProperty(requests, async played => {
    const own = ours.readRequests([bytesOf(played.text)])
    sameHoweverCut(played, own, ours.readRequests)
    const other = await nodes.readRequests(pieces(played.text, played.cuts))
    if (own.messages.some(({ line }) => !nodes.KNOWN_METHODS.has(line[0] as string))) return
    count(counts, own, other)
    waitsForNothing(played, own, other)
    const fault = disagreement(own, other)
    if (fault !== undefined) throw new Error(`${fault}\n${JSON.stringify({ own, other })}`)
  })
  await fc.assert(property, { numRuns: MESSAGES, seed: SEED })
  enough(t, counts)
})

t.test('a response is read as Node reads it, or refused', async t => {
  const counts: Counts = { taken: 0, refusedByBoth: 0, refusedByUs: 0 }
  const property = fc.asyncProperty(answers, async played => {
    const own = ours.readAnswers([bytesOf(played.text)], played.method)
    sameHoweverCut(played, own, way => ours.readAnswers(way, played.method))
    const other = await nodes.readAnswers(pieces(played.text, played.cuts), played.method)
    count(counts, own, other)
    const fault = disagreement(own, other)
    if (fault !== undefined) throw new Error(`${fault}\n${JSON.stringify({ own, other })}`)
  })
  await fc.assert(property, { numRuns: MESSAGES, seed: SEED })
  enough(t, counts)
})
