/** Generates the bytes of connections on which a gateway and the server behind it could disagree about requests. */
import { type Dice, diceOf } from './dice.js'
import {
  CODINGS,
  DATA_ENDS,
  HEAD_ENDS,
  HOSTS,
  LAST_SIZES,
  LINE_ENDS,
  lengthSpellings,
  METHODS,
  nameSpellings,
  ODD_LINES,
  requestLines,
  sizeSpellings,
  TRAILERS,
} from './spellings.js'

export interface Attack {
  /** The class of trick. */
  readonly kind: string
  /** All that the connection sends, as latin1. */
  readonly bytes: string
  /** Where the bytes are cut into writes. */
  readonly cuts: readonly number[]
}

/** What the messages of one connection are made from; ids are `<connection>-<part>`. */
interface Making {
  readonly dice: Dice
  readonly id: (part: string) => string
  /** A request that no client sent: it stands where one of two parsers sees a body. */
  readonly poison: string
}

type Maker = (making: Making) => string

const target = (id: string): string => `/m?id=${id}`

/** Joins a head from its lines; the first is the request line. */
const head = (lines: readonly string[]): string => `${lines.filter(line => line !== '').join('\r\n')}\r\n\r\n`

const chunked = (data: string): string => `${data.length.toString(16)}\r\n${data}\r\n0\r\n\r\n`

function lineOf({ dice, id }: Making): string {
  return `${dice.pick(METHODS)} ${target(id('h'))} HTTP/1.1`
}

/** Two framings of one body, each perhaps disguised; the body ends earlier by one than by the other. */
function framedTwice(making: Making): { fields: string[]; body: string } {
  const { dice, poison } = making
  const body = dice.pick([`0\r\n\r\n${poison}`, chunked(poison), `5\r\nhello\r\n0\r\n\r\n${poison}`])
  const bytes = dice.pick([body.length, 0, 4, 5, body.length - poison.length])
  const length = `${name(dice, 'Content-Length')}: ${dice.pick(lengthSpellings(bytes))}`
  const coding = `${name(dice, 'Transfer-Encoding')}: ${dice.pick(CODINGS)}`
  return { fields: dice.oneIn(2) ? [length, coding] : [coding, length], body }
}

/** Disguised half of the time. */
function name(dice: Dice, plain: string): string {
  return dice.oneIn(2) ? plain : dice.pick(nameSpellings(plain))
}

const MAKERS: Readonly<Record<string, Maker>> = {
  'length and coding': making => {
    const { fields, body } = framedTwice(making)
    return head([lineOf(making), 'Host: a', ...fields]) + body
  },
  'one length': making => {
    const { dice, poison } = making
    const bytes = dice.pick([poison.length, 0, 4, poison.length - 2])
    const field = `${name(dice, 'Content-Length')}: ${dice.pick(lengthSpellings(bytes))}`
    return head([lineOf(making), 'Host: a', field]) + poison
  },
  'two lengths': making => {
    const { dice, poison } = making
    const [first, second] = dice.pick([
      [0, poison.length],
      [poison.length, 0],
      [poison.length, poison.length],
    ] as const)
    const fields = [first, second].map(
      bytes =>
        `${name(dice, 'Content-Length')}: ${dice.oneIn(2) ? bytes : dice.pick(lengthSpellings(bytes))}`,
    )
    return head([lineOf(making), 'Host: a', ...fields]) + poison
  },
  'one coding': making => {
    const { dice, poison } = making
    const field = `${name(dice, 'Transfer-Encoding')}: ${dice.pick(CODINGS)}`
    const body = dice.pick([`0\r\n\r\n${poison}`, chunked(poison)])
    return head([lineOf(making), 'Host: a', field]) + body
  },
  'two codings': making => {
    const { dice, poison } = making
    const fields = [0, 1].map(() => `${name(dice, 'Transfer-Encoding')}: ${dice.pick(CODINGS)}`)
    const body = dice.pick([`0\r\n\r\n${poison}`, chunked(poison)])
    return head([lineOf(making), 'Host: a', ...fields]) + body
  },
  chunks: making => {
    const { dice, poison } = making
    const data = dice.pick([poison, 'hello', `0\r\n\r\n${poison}`])
    const odd = dice.below(5)
    const size = odd === 0 ? dice.pick(sizeSpellings(data.length)) : data.length.toString(16)
    const sizeEnd = odd === 1 ? dice.pick(LINE_ENDS) : '\r\n'
    const dataEnd = odd === 2 ? dice.pick(DATA_ENDS) : '\r\n'
    const last = odd === 3 ? dice.pick(LAST_SIZES) : '0'
    const trailer = odd === 4 ? dice.pick(TRAILERS) : ''
    const end = dice.oneIn(4) ? dice.pick(LINE_ENDS) : '\r\n'
    const body = `${size}${sizeEnd}${data}${dataEnd}${last}\r\n${trailer}${end}`
    return `${head([lineOf(making), 'Host: a', 'Transfer-Encoding: chunked'])}${body}${poison}`
  },
  'line ends': making => {
    const { dice, poison } = making
    const framing = dice.pick([`Content-Length: ${poison.length}`, 'Transfer-Encoding: chunked', 'X: y'])
    const end = dice.pick(LINE_ENDS)
    const lines = [lineOf(making), 'Host: a', framing, 'X-Last: z']
    const odd = dice.below(lines.length)
    const text = lines.map((line, i) => line + (i === odd ? end : '\r\n')).join('')
    return text + (dice.oneIn(2) ? '\r\n' : dice.pick(LINE_ENDS)) + poison
  },
  'head ends': making => {
    const { dice, poison } = making
    const framing = dice.pick([`Content-Length: ${poison.length}`, 'Transfer-Encoding: chunked', 'X: y'])
    return [lineOf(making), 'Host: a', framing].join('\r\n') + dice.pick(HEAD_ENDS) + poison
  },
  'request line': making => {
    const { dice, id, poison } = making
    const line = dice.pick(requestLines(dice.pick(METHODS), target(id('h'))))
    const framing = dice.pick(['', `Content-Length: ${poison.length}`, 'Content-Length: 0'])
    return head([line, 'Host: a', framing]) + poison
  },
  host: making => head([lineOf(making), making.dice.pick(HOSTS)]) + making.poison,
  'odd line': making => {
    const { dice, poison } = making
    const framing = dice.pick(['', `Content-Length: ${poison.length}`, 'Transfer-Encoding: chunked'])
    const lines = [dice.pick(ODD_LINES), framing]
    if (dice.oneIn(2)) lines.reverse()
    const body = framing.startsWith('T') ? chunked(poison) : poison
    return head([lineOf(making), 'Host: a', ...lines]) + body
  },
  'hidden by number': making => {
    const { dice } = making
    const many = Array.from({ length: 990 + dice.below(1100) }, () => 'a:b')
    const { fields, body } = framedTwice(making)
    const hidden = dice.pick([fields, fields.slice(0, 1), ['Host: evil'], [`Content-Length: ${body.length}`]])
    return head([lineOf(making), 'Host: a', ...many, ...hidden]) + body
  },
  'HTTP/1.0': making => {
    const { dice, id } = making
    const { fields, body } = framedTwice(making)
    const keep = dice.pick(['', 'Connection: keep-alive', 'Connection: close'])
    return head([`${dice.pick(METHODS)} ${target(id('h'))} HTTP/1.0`, 'Host: a', keep, ...fields]) + body
  },
  'unlooked-for body': making => {
    const { dice, id, poison } = making
    const method = dice.pick(['GET', 'HEAD', 'DELETE', 'OPTIONS'])
    const [field, body] = dice.pick([
      [`Content-Length: ${poison.length}`, poison],
      ['Transfer-Encoding: chunked', chunked(poison)],
      ['', poison],
    ] as const)
    return head([`${method} ${target(id('h'))} HTTP/1.1`, 'Host: a', field]) + body
  },
  'cut short': making => {
    const text = head([lineOf(making), 'Host: a', `Content-Length: ${making.poison.length}`]) + making.poison
    return text.slice(0, making.dice.below(text.length))
  },
}

const STRAY = ['\0', '\r', '\n', ' ', '\t', ':', ';', ',', '0', '\x0b', '\xff', '-', '\r\n', '"']

/** Changes one to three bytes anywhere. */
function stained(dice: Dice, text: string): string {
  let stain = text
  for (let i = dice.below(3); i >= 0; i--) {
    const at = dice.below(stain.length)
    stain = stain.slice(0, at) + dice.pick([...STRAY, '']) + stain.slice(at + dice.below(2))
  }
  return stain
}

/** The poison: a complete request, or a head that would swallow whatever comes next as a field's value. */
function poisonOf(dice: Dice, id: string): string {
  const start = `${dice.pick(['GET', 'POST'])} /poison?id=${id} HTTP/1.1\r\nHost: a\r\nX-Sluice-Request-Id: forged\r\n`
  return dice.oneIn(4) ? `${start}X-Swallow: ` : `${start}\r\n`
}

/** A well-formed request that ends its connection. */
function lastRequest(id: string): string {
  return `GET ${target(id)} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
}

/** The attacks of a seed, in order, one per connection. */
export function* attacks(seed: number): Generator<Attack, never> {
  const dice = diceOf(seed)
  const kinds = Object.keys(MAKERS)
  for (let connection = 0; ; connection++) {
    const id = (part: string): string => `${connection}-${part}`
    const kind = kinds[connection % kinds.length] as string
    const message = (MAKERS[kind] as Maker)({ dice, id, poison: poisonOf(dice, id('p')) })
    const hostile = dice.oneIn(3) ? stained(dice, message) : message
    const honest = dice.oneIn(3) ? `GET ${target(id('a'))} HTTP/1.1\r\nHost: a\r\n\r\n` : ''
    const bytes = honest + hostile + lastRequest(id('z'))
    const cuts = Array.from({ length: dice.below(4) }, () => dice.below(bytes.length)).sort((a, b) => a - b)
    yield { kind, bytes, cuts }
  }
}
