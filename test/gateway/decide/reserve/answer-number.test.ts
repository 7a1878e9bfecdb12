/** The number at the end of a response, whatever comes before it and however it arrives. */
import fc from 'fast-check'
import t from 'tap'
import { numberInEvents, numberInJson } from '../../../../gateway/decide/reserve/answer-number.js'
import { LastBytes, TAIL_BYTES } from '../../../../gateway/decide/reserve/answer-tail.js'
import { hostileTexts, slowInputs } from '../../../helpers/hostile.js'

const USAGE = ['usage', 'total_tokens']

function tailOf(text: string, sizes: readonly number[] = [7, 1, 5000, 70_000]) {
  const tail = new LastBytes()
  const bytes = Buffer.from(text)
  for (let at = 0, i = 0; at < bytes.length; i += 1) {
    const size = sizes[i % sizes.length] as number
    tail.add(bytes.subarray(at, at + size))
    at += size
  }
  return { text: tail.text(), isWhole: tail.isWhole }
}
const inJson = (text: string) => numberInJson(tailOf(text), USAGE)
const inEvents = (text: string) => numberInEvents(tailOf(text), USAGE)

t.test('the tail is the last bytes, in whatever pieces they came', async () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 40_000 })), {
        minLength: 1,
      }),
      fc.nat(60_000),
      (sizes, length) => {
        const text = Array.from({ length }, (_, i) => String.fromCharCode(97 + (i % 26))).join('')
        const tail = tailOf(text, sizes)
        return tail.text === text.slice(-TAIL_BYTES) && tail.isWhole === length <= TAIL_BYTES
      },
    ),
    { numRuns: 60 },
  )
})

t.test('of a short response, whatever JSON.parse finds', async t => {
  t.equal(inJson('{"id":1,"usage":{"total_tokens":42}}'), 42)
  t.equal(inJson('{"usage":{"total_tokens":42},"choices":[{"usage":{"total_tokens":1}}]}'), 42)
  t.equal(inJson('{"usage":{"total_tokens":0}}'), 0)
  for (const wrong of ['-1', '1.5', '"42"', 'null', '9007199254740993', '1e400', '{}', '[42]']) {
    t.equal(inJson(`{"usage":{"total_tokens":${wrong}}}`), undefined, wrong)
  }
  for (const text of [
    '',
    'no JSON',
    '{"usage":{"total_tokens":42}',
    '[]',
    '{"usage":null}',
    '{"__proto__":{}}',
  ]) {
    t.equal(inJson(text), undefined, text)
  }
})

t.test('of a long response, the member of the outermost object in its tail, and no other', async t => {
  const aText = fc.string({
    unit: fc.constantFrom('a', '"', '\\', '{', '}', ',', ':', '\n', 'é', '"usage":{"total_tokens":9}'),
  })
  fc.assert(
    fc.property(
      fc.array(aText, { maxLength: 40 }),
      fc.nat(30_000),
      fc.nat(1_000_000),
      (texts, long, tokens) => {
        const choices = [
          { text: 'x'.repeat(long) },
          ...texts.map(text => ({ text, usage: { total_tokens: 1 } })),
        ]
        const answer = JSON.stringify({
          choices,
          usage: { prompt: { total_tokens: 2 }, total_tokens: tokens },
          end: texts,
        })
        const found = inJson(answer)
        const isCut = Buffer.byteLength(JSON.stringify({ usage: 0, end: texts })) > TAIL_BYTES
        return found === tokens || (isCut && found === undefined)
      },
    ),
    { numRuns: 300 },
  )
  const forged = 'x"usage":{"total_tokens":1}'.repeat(900)
  t.equal(inJson(JSON.stringify({ text: forged })), undefined, 'what a model says is no usage')
  t.equal(inJson(JSON.stringify({ text: forged, usage: { total_tokens: 7 } })), 7)
  t.equal(inJson(JSON.stringify({ usage: { total_tokens: 7 }, text: forged })), undefined, 'before the tail')
  t.equal(
    inJson(JSON.stringify({ x: { usage: { total_tokens: 7 }, text: 'y' }, z: 1, w: 'v'.repeat(20_000) })),
    undefined,
  )
})

t.test('of a stream, the last event that has it', async t => {
  const chunk = (tokens: unknown) =>
    `data: ${JSON.stringify({ text: 'hi', usage: tokens && { total_tokens: tokens } })}\n\n`
  t.equal(inEvents(`${chunk(null)}${chunk(5)}${chunk(9)}data: [DONE]\n\n`), 9)
  t.equal(inEvents(`${chunk(null).repeat(2000)}${chunk(9)}data: [DONE]\n\n`), 9)
  t.equal(inEvents(chunk(9).replaceAll('\n', '\r\n')), 9)
  t.equal(inEvents(chunk(9).trimEnd()), 9, 'without a last blank line')
  t.equal(
    inEvents('event: usage\ndata: {"usage":\ndata:{"total_tokens":3}}\nid: 1\n\n'),
    3,
    'data of several lines',
  )
  t.equal(
    inEvents(`data: ${JSON.stringify({ text: 'x'.repeat(20_000), usage: { total_tokens: 9 } })}\n\n`),
    undefined,
  )
  t.equal(inEvents(`${chunk(9)}${chunk(null).repeat(2000)}`), undefined, 'before the tail')
  t.equal(inEvents(`data: ${JSON.stringify('data: {"usage":{"total_tokens":1}}')}\n\n`), undefined)
  for (const text of ['', '\n\n', 'data:\n\n', 'data: {\n\n', ': comment\n\n'])
    t.equal(inEvents(text), undefined)
})

t.test('hostile responses take linear time', async t => {
  const read = (text: string) => {
    const tail = { text: text.slice(-TAIL_BYTES), isWhole: text.length <= TAIL_BYTES }
    numberInJson(tail, USAGE)
    numberInJson({ ...tail, isWhole: false }, USAGE)
    numberInEvents(tail, USAGE)
  }
  t.same(await slowInputs(hostileTexts(TAIL_BYTES, { starts: ['{"usage":', 'data: '] }), read), [])
})
