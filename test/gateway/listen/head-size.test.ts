/** Heads that are too large: 414 for the target, 431 for the fields (RFC 9110, RFC 6585). */
import t, { type Test } from 'tap'
import { GET, type RawPeer } from '../../helpers/raw.js'
import { sleep } from '../../helpers/wait.js'
import { createWire } from './wire.js'

const wire = await createWire(t)

const target = (bytes: number): string => `GET /${'a'.repeat(bytes)} HTTP/1.1\r\nHost: a\r\n\r\n`
const one = (bytes: number): string => `GET / HTTP/1.1\r\nHost: a\r\nX: ${'b'.repeat(bytes)}\r\n\r\n`
const many = (bytes: number): string =>
  `GET / HTTP/1.1\r\nHost: a\r\n${`Cookie: ${'b'.repeat(90)}\r\n`.repeat(bytes / 100)}\r\n`

async function refused(t: Test, client: RawPeer, status: number, what: string): Promise<void> {
  const { line, body } = await client.message()
  t.match(line, new RegExp(`^HTTP/1.1 ${status} `), what)
  const code = status === 414 ? 'target-too-long' : 'header-too-large'
  t.match(JSON.parse(body), { status, code }, what)
}

t.test('a head over 16 KiB gets 414 or 431 for its larger part, and the connection persists', async t => {
  const mixed = target(9_000).replace('\r\n\r\n', `\r\nX: ${'b'.repeat(8_000)}\r\n\r\n`)
  for (const [head, status] of [
    [target(17_000), 414],
    [target(30_000).replace('GET /', 'GET http://shop.example:80/?'), 414],
    [mixed, 414],
    [one(17_000), 431],
    [many(30_000), 431],
    [one(9_000).replace('GET /', `GET /${'a'.repeat(8_000)}`), 431],
  ] as const) {
    const client = await wire.answered(t)
    await refused(t, client.send(head), status, head.slice(0, 40))
    t.match((await client.send(GET).message()).line, / 200 /)
    t.equal(wire.seen.length, 1, 'only the second request reaches the upstream')
  }
})

t.test('a head just under 16 KiB passes, with a long target or with long fields', async t => {
  for (const head of [target(16_000), one(16_000)]) {
    const client = await wire.answered(t)
    t.match((await client.send(head).message()).line, / 200 /)
    t.equal(wire.seen.length, 1)
  }
})

t.test('a request with more than 160 fields gets 431', async t => {
  const short = (count: number) => `GET / HTTP/1.1\r\nHost: a\r\n${'a:b\r\n'.repeat(count - 1)}\r\n`
  const client = await wire.answered(t)
  await refused(t, client.send(short(161)), 431, '161 fields')
  t.match((await client.send(short(160)).message()).line, / 200 /)
})

t.test('a target that is too long gets 414 on an upgrade and an upload too', async t => {
  for (const fields of [
    'Connection: Upgrade\r\nUpgrade: websocket',
    'Content-Length: 2',
    'Expect: 100-continue\r\nContent-Length: 2',
  ]) {
    const client = await wire.answered(t)
    await refused(t, client.send(target(17_000).replace('Host: a', `Host: a\r\n${fields}`)), 414, fields)
    t.equal(wire.seen.length, 0)
  }
})

t.test('a head over the parser’s limit', async t => {
  const ends = async (head: string, status: number, what: string): Promise<void> => {
    const client = await wire.answered(t)
    await refused(t, client.send(head), status, what)
    t.equal(await client.rest(), '', 'nothing follows the refusal')
    t.equal(client.error, undefined)
  }

  t.test('gets 414 for a target and 431 for fields, and the connection closes', async () => {
    await ends(target(100_000), 414, 'a target')
    await ends(target(100_000).replace('GET', 'M-SEARCH'), 414, 'a target behind another method')
    await ends(target(100_000).replace('GET /', 'GET http://shop.example:80/?a:'), 414, 'an absolute target')
    await ends(one(100_000), 431, 'a field')
    await ends(one(100_000).replace('X: ', 'X:'), 431, 'a field without a blank')
    await ends(one(40_000).replace('X: ', 'X').replace('\r\n\r\n', ':\r\n\r\n'), 431, 'a name')
    await ends(many(100_000), 431, 'many fields')
    await ends(target(20_000).replace('Host: a', `X: ${'b'.repeat(20_000)}`), 431, 'fields behind a target')
  })

  t.test('is refused in its turn, behind the responses to earlier requests', async t => {
    const client = await wire.answered(t)
    t.match((await client.send(GET).message()).line, / 200 /)
    await refused(t, client.send(target(100_000)), 414, 'after an answer')
    for (const [head, status] of [
      [target(40_000), 414],
      [many(40_000), 431],
    ] as const) {
      const pipelining = await wire.answered(t)
      pipelining.send(`${GET}POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello${head}`)
      for (let i = 0; i < 2; i++) t.match((await pipelining.message()).line, / 200 /)
      await refused(t, pipelining, status, 'in its turn')
    }
  })

  t.test('in pieces is refused for the right part', async t => {
    for (const [head, status] of [
      [target(50_000), 414],
      [one(50_000).replaceAll('bbbbbbbb', 'b=1; c=2'), 431],
      [many(50_000), 431],
    ] as const) {
      const client = await wire.answered(t)
      for (let at = 0; at < head.length && !client.ended; at += 1_460) {
        client.send(head.slice(at, at + 1_460))
        await sleep(1)
      }
      await refused(t, client, status, head.slice(0, 60))
    }
  })
})
