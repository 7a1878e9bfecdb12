/** Generates the bytes of connections: messages with one framing, none or two, slightly corrupted, and cut anywhere. */
import fc, { type Arbitrary } from 'fast-check'
import { chunks, content, POISON } from './bodies.js'
import { coding, head, lengthOf, requestLine, statusLine } from './heads.js'
import { always, joined, mostly, oneOf, repeated, type Text, weighed } from './texts.js'

/** One connection's bytes, as Latin-1, and where they are cut. */
export interface Played {
  readonly text: string
  readonly cuts: readonly number[]
  /** Method of the request, when a response is read. */
  readonly method: string
}

const behind = mostly(
  always(''),
  [POISON, 'GET / HTTP/1.1\r\n\r\n', '\r\n', '\r\n\r\nGET /b HTTP/1.0\r\n\r\n'],
  3,
)

const message = (first: Text): Text =>
  weighed(
    [4, joined(head(first, always('')), behind)],
    [5, content.chain(body => joined(head(first, lengthOf(body.length)), always(body), behind))],
    [6, joined(head(first, coding), chunks, behind)],
    [1, joined(head(first, joined(lengthOf(5), coding)), chunks, behind)],
    [1, joined(head(first, joined(lengthOf(5), lengthOf(5))), content, behind)],
  )

const STRAY = [...'\0\r\n \t:;,0\x0b\xff\x7f-"', '\r\n', '\r\n\r\n', '']
const stain = fc.record({ at: fc.nat(), stray: fc.constantFrom(...STRAY), over: fc.nat(1) })
const stains = fc.oneof(
  { weight: 3, arbitrary: fc.constant([]) },
  { weight: 1, arbitrary: fc.array(stain, { minLength: 1, maxLength: 3 }) },
)

/** A text with up to a few bytes changed anywhere. */
const stained = (text: Text): Text =>
  fc.tuple(text, stains).map(([plain, marks]) => {
    let result = plain
    for (const { at, stray, over } of marks) {
      const place = at % (result.length + 1)
      result = result.slice(0, place) + stray + result.slice(place + over)
    }
    return result
  })

/**
 * White space after a value may be tabs (RFC 9110 section 5.6.3), but Node accepts only spaces after a length or a
 * coding. That cannot be compared, so tabs are replaced by a space.
 */
const withoutTabs = (text: string): string =>
  text.replace(/^((?:content-length|transfer-encoding):[^\r\n]*?)[\t ]+(?=\r\n)/gim, '$1 ')

const played = (text: Text): Arbitrary<Played> =>
  fc
    .tuple(stained(text), fc.array(fc.nat(), { maxLength: 4 }), oneOf('GET', 'GET', 'POST', 'HEAD'))
    .map(([plain, places, method]) => {
      const bytes = withoutTabs(plain)
      const cuts = places.map(place => place % (bytes.length + 1)).sort((a, b) => a - b)
      return { text: bytes, cuts, method }
    })

/** What a client sends: some requests, one after the other. */
export const requests: Arbitrary<Played> = played(repeated(message(requestLine), 3))

const INTERIM = [
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n',
  'HTTP/1.1 102\r\nConnection: close\r\n\r\n',
]
/** What an upstream sends in response to one request. */
export const answers: Arbitrary<Played> = played(joined(mostly(always(''), INTERIM, 5), message(statusLine)))
