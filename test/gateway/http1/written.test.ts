/** What we write is read by Node's parser, and by ours, as exactly the one message that was intended. */
import fc from 'fast-check'
import t from 'tap'
import { fieldsOf } from '../../../gateway/http1/fields.js'
import { chunkPrefix, headText, lastChunk } from '../../../gateway/http1/head-text.js'
import * as nodes from './oracle/nodes.js'
import * as ours from './oracle/ours.js'
import type { Message, Reading } from './oracle/reading.js'
import { requests } from './oracle/spell.js'

const SEED = Number(process.env.SEED ?? 1)

t.test('a head is its first line, a line for each field, and an empty line', async t => {
  t.equal(headText('GET / HTTP/1.1', []), 'GET / HTTP/1.1\r\n\r\n')
  const head = headText('HTTP/1.1 200 OK', [
    'A',
    'b',
    'Set-Cookie',
    'c',
    'set-cookie',
    'caf\xe9',
    'Empty',
    '',
  ])
  t.equal(head, 'HTTP/1.1 200 OK\r\nA: b\r\nSet-Cookie: c\r\nset-cookie: caf\xe9\r\nEmpty: \r\n\r\n')
})

t.test('a chunk follows its size in hex, and trailers follow the last chunk', async t => {
  t.equal(chunkPrefix(5), '5\r\n')
  t.equal(chunkPrefix(65_536), '10000\r\n')
  t.equal(lastChunk([]), '0\r\n\r\n')
  t.equal(lastChunk(['X-T', '1', 'X-T', '2']), '0\r\nX-T: 1\r\nX-T: 2\r\n\r\n')
})

/** A name that affects neither where a message ends nor what follows it. */
const name = fc
  .string({ unit: fc.constantFrom(..."abcXYZ019!#$%&'*+-.^_`|~"), minLength: 1, maxLength: 20 })
  .map(text => `X-${text}`)
/** Without white space at its ends, as it is read. */
const value = fc
  .string({
    unit: fc
      .integer({ min: 32, max: 255 })
      .filter(code => code !== 127)
      .map(code => String.fromCharCode(code)),
  })
  .map(text => text.replace(/^ +| +$/g, ''))
const fields = fc.array(fc.tuple(name, value), { maxLength: 6 }).map(pairs => pairs.flat())
const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 4 })

interface Meant {
  readonly fields: readonly string[]
  readonly body: string
  readonly trailers: readonly string[]
  readonly text: string
}

/** A message in one of its possible framings. */
const meant = (line: string): fc.Arbitrary<Meant> =>
  fc.tuple(fields, pieces, fields, fc.boolean()).map(([own, chunks, trailers, isChunked]) => {
    const parts = chunks.map(chunk => Buffer.from(chunk).toString('latin1'))
    const body = parts.join('')
    if (!isChunked) {
      const all = [...own, 'Content-Length', String(body.length)]
      return { fields: all, body, trailers: [], text: headText(line, all) + body }
    }
    const all = [...own, 'Transfer-Encoding', 'chunked']
    const content = parts.map(part => `${chunkPrefix(part.length)}${part}\r\n`).join('')
    return { fields: all, body, trailers, text: headText(line, all) + content + lastChunk(trailers) }
  })

function isExactly(reading: Reading, line: readonly string[], { fields, body, trailers }: Meant): boolean {
  const message: Message = { line, fields, body, trailers, complete: true }
  return reading.refused === undefined && JSON.stringify(reading.messages) === JSON.stringify([message])
}

t.test('requests and responses are read back as they were written, by Node’s parser and ours', async t => {
  const request = fc.asyncProperty(meant('POST /a?b HTTP/1.1'), async message => {
    const bytes = [Buffer.from(message.text, 'latin1')]
    const line = ['POST', '/a?b', '1.1']
    return (
      isExactly(await nodes.readRequests(bytes), line, message) &&
      isExactly(ours.readRequests(bytes), line, message)
    )
  })
  await t.resolves(fc.assert(request, { numRuns: 1000, seed: SEED }), 'requests')
  const answer = fc.asyncProperty(meant('HTTP/1.1 200 Well'), async message => {
    const bytes = [Buffer.from(message.text, 'latin1')]
    const line = ['1.1', '200', 'Well']
    return (
      isExactly(await nodes.readAnswers(bytes, 'GET'), line, message) &&
      isExactly(ours.readAnswers(bytes, 'GET'), line, message)
    )
  })
  await t.resolves(fc.assert(answer, { numRuns: 1000, seed: SEED }), 'responses')
})

t.test('an odd message that was accepted and written again is read as the same message', async t => {
  let written = 0
  const property = fc.asyncProperty(requests, async ({ text }) => {
    for (const message of ours.readRequests([Buffer.from(text, 'latin1')]).messages) {
      const [method = '', target = '', version = ''] = message.line
      const names = fieldsOf(message.fields)
      if (!message.complete || !nodes.KNOWN_METHODS.has(method) || names.has('upgrade')) continue
      const isChunked = names.has('transfer-encoding')
      const body = isChunked ? `${chunkPrefix(message.body.length)}${message.body}\r\n` : message.body
      const head = headText(`${method} ${target} HTTP/${version}`, message.fields)
      const again = head + (message.body === '' ? '' : body) + (isChunked ? lastChunk(message.trailers) : '')
      const reading = await nodes.readRequests([Buffer.from(again, 'latin1')])
      if (!isExactly(reading, message.line, { ...message, text: again }))
        throw new Error(JSON.stringify([again, reading]))
      written++
    }
  })
  await fc.assert(property, { numRuns: 2000, seed: SEED })
  t.ok(written > 500, `${written} messages`)
})
