/**
 * An upstream whose responses are odd, broken or followed by a poisoned one: whatever it sends, each request gets only
 * its own response. `MESSAGES=20000 SEED=7 node dist/test/gateway/http1/hostile-upstream.test.js` for a long run.
 */
import t from 'tap'
import { type Dice, diceOf } from '../listen/smuggling/dice.js'
import { Listener, type Scene, scene } from './upstream.js'

const MESSAGES = Number(process.env.MESSAGES ?? 1500)
const SEED = Number(process.env.SEED ?? 1)
const AT_ONCE = 16

t.setTimeout(30_000 + MESSAGES * 5)

const FRAMINGS = [
  (size: number) => `Content-Length: ${size}`,
  (size: number) => `Content-Length: ${size + 3}`,
  (size: number) => `Content-Length: ${size - 3}`,
  (size: number) => `Content-Length: ${size}\r\nContent-Length: ${size}`,
  (size: number) => `Content-Length: ${size}, ${size}`,
  (size: number) => `Content-Length : ${size}`,
  (size: number) => `Content-Length: ${size}\r\nTransfer-Encoding: chunked`,
  (size: number) => `Content-Length:\r\n ${size}`,
  () => 'Content-Length: 0',
  () => 'Transfer-Encoding: chunked',
  () => 'Transfer-Encoding: xchunked',
  () => 'transfer-encoding: CHUNKED',
  () => 'X-None: 1',
]
const LINES = [
  '200 OK',
  '200 OK',
  '200 OK',
  '200 OK',
  '200',
  '200 ',
  '204 No Content',
  '304 Not Modified',
  '404 No',
  '20 OK',
  '2000 OK',
  '099 Odd',
]
const BEFORE = [
  '',
  '',
  '',
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n',
  '\r\n',
]
const POISON = 'HTTP/1.1 200 OK\r\nX-Number: -1\r\nContent-Length: 4\r\n\r\nevil'

/** The bytes of the response to request `number`. */
function answer(dice: Dice, number: string): string {
  const body = `body of ${number}`
  const framing = dice.oneIn(2) ? `Content-Length: ${body.length}` : dice.pick(FRAMINGS)(body.length)
  const chunked = dice.oneIn(10) !== /chunked/i.test(framing)
  const content = chunked ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body
  const head = `${dice.pick(BEFORE)}HTTP/1.${dice.oneIn(10) ? 0 : 1} ${dice.pick(LINES)}\r\nX-Number: ${number}\r\n`
  const bytes = `${head}${framing}\r\n\r\n${content}`
  return bytes + (dice.oneIn(4) ? POISON : '')
}

/** `bytes` with one byte changed, left out or inserted, outside of its number. */
function stained(dice: Dice, bytes: string): string {
  const at = dice.below(bytes.length)
  const byte = dice.pick(['\r', '\n', '\0', ' ', ':', '0', 'x', '\xff', ''])
  const number = bytes.indexOf('X-Number')
  if (at >= number - 2 && at < number + 20) return bytes
  return bytes.slice(0, at) + byte + bytes.slice(at + dice.below(2))
}

/** What is wrong with what was received for request `number`. */
function faultOf({ head, over }: Listener, number: string): string | undefined {
  if (!over) return 'never over'
  const told = head?.fields.get('x-number')
  return told === undefined || told === number ? undefined : `the answer of ${told}`
}

async function ask({ pool }: Scene, number: string): Promise<Listener> {
  const method = Number(number) % 5 === 0 ? 'HEAD' : 'GET'
  const listener = new Listener(`${method} /${number} HTTP/1.1\r\nHost: a\r\n\r\n`)
  pool.take(listener)
  await listener.end().catch(() => {})
  return listener
}

t.test(`${MESSAGES} hostile responses, seed ${SEED}: each request gets its own response or none`, async t => {
  const dice = diceOf(SEED)
  const stage = await scene(
    t,
    ({ socket }) => {
      socket.on('data', bytes => {
        const number = /\/(\d+) /.exec(`${bytes}`)?.[1] ?? ''
        const whole = answer(dice, number)
        socket.write(dice.oneIn(3) ? stained(dice, whole) : whole, 'latin1')
        if (dice.oneIn(5)) socket.end()
      })
    },
    { headMs: 200, idleMs: 200 },
  )
  const ends = new Map<string, number>()
  const faults: string[] = []
  let next = 0
  const askOn = async (): Promise<void> => {
    while (next < MESSAGES) {
      const number = String(next++)
      const listener = await ask(stage, number)
      const end = listener.heard.at(-1) ?? 'nothing'
      ends.set(end, (ends.get(end) ?? 0) + 1)
      const fault = faultOf(listener, number)
      if (fault !== undefined) faults.push(`${number}: ${fault}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, askOn))
  t.comment([...ends].map(([end, count]) => `${end}: ${count}`).join(' · '))
  t.same(faults.slice(0, 5), [])
  t.ok((ends.get('end') ?? 0) > MESSAGES / 5, 'some responses are valid')
  t.ok((ends.get('invalid, heard') ?? 0) > MESSAGES / 5, 'some responses are invalid')
  t.ok(stage.upstream.connections.length < MESSAGES * 0.9, 'some connections are reused')
})
