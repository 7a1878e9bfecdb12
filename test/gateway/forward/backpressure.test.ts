/**
 * Large bodies in both directions past a slow reader: pending bytes wait at the sender, not in the gateway's memory.
 */
import { request } from 'node:http'
import type { Readable, Writable } from 'node:stream'
import t, { type Test } from 'tap'
import { gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { startApp } from '../../helpers/http.js'
import { sleep, waitUntil } from '../../helpers/wait.js'

const MB = 1024 * 1024
const SIZE = 200 * MB
/**
 * Allowed growth of the gateway's memory: V8 lets some 64 MB of dead buffers accumulate in a process that moves bytes.
 */
const EXTRA = 60 * MB
const BLOCK = Buffer.alloc(256 * 1024, 'x')

/** Writes SIZE bytes with backpressure. */
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

/** Reads to the end with a pause after every two megabytes; returns the number of bytes. */
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

interface Scene {
  readonly url: string
  /** What the upstream has sent and received. */
  readonly app: { sent(): number; received: number }
  /** The most that the gateway's memory grows during `work`, in bytes. */
  growth(work: () => Promise<void>): Promise<number>
}

async function scene(t: Test): Promise<Scene> {
  const app = { sent: () => 0, received: 0 }
  const upstream = await startApp(t, async (req, res) => {
    if (req.method === 'GET') {
      app.sent = pour(res).sent
      return
    }
    app.received = await readSlowly(req)
    res.end('done')
  })
  const folder = writeConfig(
    t,
    `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { app: { url: "${upstream}", timeouts: { connect: 5s, head: 60s, idle: 60s } } }
routes: [{ path: /**, upstream: app }]
`,
    {},
  )
  const { url, resident } = await gatewayProcess(t, folder)

  async function growth(work: () => Promise<void>): Promise<number> {
    const before = await resident()
    let most = before
    let done = false
    const sampling = (async () => {
      while (!done) {
        most = Math.max(most, await resident())
        await sleep(50)
      }
    })()
    await work().finally(() => {
      done = true
    })
    await sampling
    return most - before
  }

  return { url, app, growth }
}

const answerOf = (sent: ReturnType<typeof request>): Promise<Readable> =>
  new Promise((resolve, reject) => sent.once('response', resolve).once('error', reject))

t.test('200 MB pass in bounded memory', async t => {
  const { url, app, growth } = await scene(t)
  for await (const _chunk of await answerOf(request(url).end())) {
    // The first two hundred megabytes pass at full speed.
  }

  t.test('down to a slow reader', async t => {
    const grown = await growth(async () => {
      const answer = await answerOf(request(url).end())
      await sleep(200)
      t.ok(
        app.sent() < SIZE / 2,
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
    const grown = await growth(async () => {
      const asked = Array.from({ length: 40 }, () => request(url, { agent: false }).end())
      await Promise.all(asked.map(answerOf))
      await sleep(500)
      for (const one of asked) one.destroy()
    })
    t.ok(grown < EXTRA, `${Math.round(grown / MB)} MB`)
  })
})
