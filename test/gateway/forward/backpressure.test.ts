/** Large bodies in both directions past a slow reader: what is under way waits where it comes from, not in memory. */
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import t, { type Test } from 'tap'
import { testGateway } from '../../helpers/gateway.js'
import { sleep, waitUntil } from '../../helpers/wait.js'

const MB = 1024 * 1024
const SIZE = 200 * MB
/** Of this whole process: client, gateway and upstream together. */
const EXTRA = 60 * MB
const BLOCK = Buffer.alloc(256 * 1024, 'x')

/** Writes SIZE bytes no faster than they are taken. */
function pour(into: Writable): { sent(): number } {
  let sent = 0
  const fill = (): void => {
    while (sent < SIZE) {
      sent += BLOCK.length
      if (!into.write(BLOCK)) return
    }
    into.off('drain', fill).end()
  }
  into.on('drain', fill)
  fill()
  return { sent: () => sent }
}

/** Reads to the end with a rest after every two megabytes; the count of bytes. */
async function readSlowly(from: Readable): Promise<number> {
  let read = 0
  let rested = 0
  for await (const chunk of from) {
    read += (chunk as Buffer).length
    if (read - rested < 2 * MB) continue
    rested = read
    await sleep(10)
  }
  return read
}

/** The most that memory grows by while `work` is under way. */
async function growth(work: () => Promise<void>): Promise<number> {
  const before = process.memoryUsage.rss()
  let most = before
  const sampling = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss())
  }, 20)
  await work().finally(() => clearInterval(sampling))
  return most - before
}

interface Scene {
  readonly url: string
  /** What the upstream has sent and received. */
  readonly app: { sent(): number; received: number }
}

async function scene(t: Test): Promise<Scene> {
  const app = { sent: () => 0, received: 0 }
  const server = createServer(async (req, res) => {
    if (req.method === 'GET') {
      app.sent = pour(res).sent
      return
    }
    app.received = await readSlowly(req)
    res.end('done')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const upstream = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { url } = await testGateway(t, { upstream, timeouts: '{ connect: 1s, head: 20s, idle: 20s }' })
  return { url, app }
}

const answerOf = (sent: ReturnType<typeof request>): Promise<Readable> =>
  new Promise((resolve, reject) => sent.once('response', resolve).once('error', reject))

t.test('200 MB', async t => {
  const { url, app } = await scene(t)

  t.test('down to a slow reader', async t => {
    const grown = await growth(async () => {
      const answer = await answerOf(request(url).end())
      await sleep(200)
      t.ok(
        app.sent() < 40 * MB,
        `${Math.round(app.sent() / MB)} MB left the upstream before the first was read`,
      )
      t.equal(await readSlowly(answer), SIZE)
    })
    t.ok(grown < EXTRA, `${Math.round(grown / MB)} MB`)
  })

  t.test('up to a slow reader', async t => {
    const grown = await growth(async () => {
      const sent = request(url, { method: 'PUT' })
      pour(sent)
      ;(await answerOf(sent)).resume()
    })
    await waitUntil('the whole body', () => app.received === SIZE)
    t.ok(grown < EXTRA, `${Math.round(grown / MB)} MB`)
  })

  t.test('to forty readers that read nothing', async t => {
    const asked = Array.from({ length: 40 }, () => request(url, { agent: false }).end())
    const grown = await growth(async () => {
      await Promise.all(asked.map(answerOf))
      await sleep(500)
    })
    for (const one of asked) one.destroy()
    t.comment(`${Math.round(grown / MB / 40)} MB for each, sockets of both sides included`)
    t.ok(grown < 40 * 2 * MB, `${Math.round(grown / MB)} MB`)
  })
})
