/** Reserve and settle, through the whole gateway: what is known only with the response never exceeds a window. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { clusterUrl, redisCommand, redisUrl, startRedis } from '../helpers/redis.js'
import { waitUntil } from '../helpers/wait.js'

const QUOTA = 10_000
const policies = (unknown = 'keep', quota = 'windows: [{ name: hour, requests: 10000, per: 1h }]') => ({
  'tokens.yaml': `version: 1
kind: project-limits
buckets:
  tokens:
    match: [POST /chat, { pattern: POST /embed, cost: 10 }]
    cost:
      reserve: { default: 1000, jsonBody: max_tokens, atMost: 4000 }
      settle: { answerHeader: x-tokens, jsonBody: usage.total_tokens, sse: usage.total_tokens }
      unknown: ${unknown}
  rest: ["*"]
limits:
  - for: [{}]
    quotas:
      tokens: { ${quota} }
      rest: unlimited
`,
})

/** What the upstream does with a request, by its query: `tokens` used, and `as` how it says so. */
function model(req: IncomingMessage, res: ServerResponse): void {
  const { searchParams: asked } = new URL(req.url ?? '', 'http://model')
  const tokens = Number(asked.get('tokens'))
  const as = asked.get('as') ?? 'json'
  const wait = Number(asked.get('ms') ?? 0)
  const usage = { usage: { total_tokens: tokens } }
  req.resume().on('end', () => {
    setTimeout(() => {
      if (as === 'dies') res.destroy()
      else if (as === 'header') res.setHeader('x-tokens', String(tokens)).end('ok')
      else if (as === 'nothing') res.end('{}')
      else if (as === 'cut') {
        res.setHeader('content-length', '1000').write(JSON.stringify(usage))
        setTimeout(() => res.destroy(), 5)
      } else if (as === 'gzip') res.setHeader('content-encoding', 'gzip').end(JSON.stringify(usage))
      else if (as === 'stream') {
        res.setHeader('content-type', 'text/event-stream')
        res.write(`data: {"usage":null}\n\n`.repeat(2000))
        res.write(`data: ${JSON.stringify(usage)}\n\n`)
        res.end('data: [DONE]\n\n')
      } else
        res
          .setHeader('content-type', 'application/json')
          .end(JSON.stringify({ text: 'x'.repeat(40_000), ...usage }))
    }, wait)
  })
}

interface Scene {
  /** Sends a request to one of the gateways. */
  chat(query: string, body?: object | string, gateway?: number): Promise<{ readonly status: number }>
  /** What is counted now, by every gateway. */
  used(): Promise<number[]>
}

/** Where it is counted: in the process if `open` gives no address, on two gateways otherwise. */
interface Place {
  readonly name: string
  /** Null if it cannot be had here. */
  open(t: Test): Promise<string | undefined | null>
  readonly quota?: string
  /** Of the property. */
  readonly runs: number
}

const onRedis = async (t: Test) => (await redisUrl(t)) ?? null
const PLACES: readonly Place[] = [
  { name: 'in process', open: async () => undefined, runs: 8 },
  { name: 'on two gateways and Redis', open: onRedis, runs: 3 },
  {
    name: 'on two gateways and a Cluster',
    runs: 1,
    open: async t => (await clusterUrl(t)) ?? null,
  },
  {
    name: 'on two gateways, in a month',
    runs: 2,
    open: onRedis,
    quota:
      'windows: [{ name: month, requests: 10000, per: month }, { name: hour, requests: 20000, per: 1h }]',
  },
  {
    name: 'on two gateways that lease tokens',
    runs: 2,
    open: onRedis,
    quota: 'lease: true, windows: [{ name: hour, requests: 10000, per: 1h }]',
  },
]
const [IN_PROCESS] = PLACES as [Place]

async function scene(t: Test, { open, quota }: Place, unknown?: string): Promise<Scene | undefined> {
  const redis = await open(t)
  if (redis === null) return undefined
  const gateways = redis === undefined ? 1 : 2
  const upstream = await startApp(t, model)
  const settings = redis === undefined ? '' : `redis: ${redis}\nstore: { deadline: 5s, onError: closed }`
  const all = await Promise.all(
    Array.from({ length: gateways }, () =>
      testGateway(t, {
        upstream,
        policies: policies(unknown, quota),
        settings: `retryJitter: 0%\n${settings}`,
      }),
    ),
  )
  const chat: Scene['chat'] = (query, body = {}, gateway = 0) =>
    send(`${all[gateway % all.length]?.url}/chat?${query}`, {
      method: 'POST',
      headers: { host: 'acme.localhost', 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  const used = async () => {
    const counted: number[] = []
    // One after another, because asking costs something, too.
    for (const { url } of all) counted.push(QUOTA - (await leftAt(url)) - embedded)
    return counted
  }
  await waitUntil('every gateway to reach its store', async () => (await used()).every(Number.isFinite))
  return { chat, used }
}

/** What the requests cost with which tests ask how much is left. */
let embedded = 0

/** What a gateway says is left; not a number if its store did not answer, which costs nothing. */
async function leftAt(url: string): Promise<number> {
  const { headers } = await send(`${url}/embed`, { method: 'POST', headers: { host: 'acme.localhost' } })
  const rest = /;r=(\d+)/.exec(String(headers.ratelimit))?.[1]
  if (rest !== undefined) embedded += 10
  return Number(rest)
}

for (const place of PLACES) {
  const isLeased = place.quota?.includes('lease') === true

  t.test(`${place.name}, a request costs what its response says`, async t => {
    embedded = 0
    const at = await scene(t, place)
    if (at === undefined) return
    let spent = 0
    const costs = async (query: string, body: object | string, expected: number) => {
      const { status } = await at.chat(query, body)
      t.ok(status === 200 || status === 502, `${query} ${status}`)
      spent += expected
      await waitUntil(`${query} ${JSON.stringify(body)} to cost ${expected}`, async () => {
        const [used = 0] = await at.used()
        return isLeased ? used >= spent : used === spent
      })
    }
    await costs('tokens=120', {}, 120)
    await costs('tokens=130&as=stream', { max_tokens: 400 }, 130)
    await costs('tokens=140&as=header', {}, 140)
    await costs('tokens=0', {}, 0)
    await costs('tokens=1500', { max_tokens: 200 }, 1500)
    await costs('tokens=10&as=nothing', { max_tokens: 300 }, 300)
    await costs('tokens=10&as=gzip', { max_tokens: 310 }, 310)
    await costs('tokens=10&as=dies', { max_tokens: 320 }, 320)
    await costs('tokens=10&as=nothing', '{"max_tokens":5,"max_tokens":50,"MAX_TOKENS":40}', 50)
    await costs('tokens=10&as=nothing', '{"max_tokens":5,"max_tokenſ":60}', 60)
    await costs('tokens=10&as=nothing', { max_tokens: '60' }, 1000)
    await costs('tokens=10&as=nothing', '{"max_tokens":7', 4000)
  })

  t.test(`${place.name}, parallel requests never spend more than the quota, and all of it`, async t => {
    const aRequest = fc.record({
      reserve: fc.integer({ min: 1, max: 4000 }),
      part: fc.integer({ min: 0, max: 100 }),
      as: fc.constantFrom('json', 'stream', 'header', 'nothing', 'dies'),
      ms: fc.nat(8),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(aRequest, { minLength: 5, maxLength: 25 }), async requests => {
        embedded = 0
        const at = await scene(t, place)
        if (at === undefined) return
        let spent = 0
        await Promise.all(
          requests.map(async ({ reserve, part, as, ms }, i) => {
            const actual = Math.floor((reserve * part) / 100)
            const { status } = await at.chat(`tokens=${actual}&as=${as}&ms=${ms}`, { max_tokens: reserve }, i)
            // On a busy machine Redis may answer too late: then nothing is admitted, and nothing counted.
            if (status === 200 || status === 502)
              spent += as === 'nothing' || as === 'dies' ? reserve : actual
          }),
        )
        t.ok(spent <= QUOTA, `${spent}`)
        // The windows end at what was spent, so the next request has all of the rest.
        if (spent > QUOTA - 100 || isLeased) return
        await waitUntil(`${spent} to be counted`, async () => (await at.used()).every(used => used === spent))
        const rest = Math.min(4000, QUOTA - spent - embedded)
        await waitUntil(`${rest} to be left`, async () => {
          const { status } = await at.chat(`tokens=0`, { max_tokens: rest })
          return status === 200
        })
      }),
      { numRuns: place.runs, endOnFailure: true },
    )
  })
}

t.test('what was never sent costs nothing, nor does what has no number with unknown: free', async t => {
  embedded = 0
  const at = await scene(t, IN_PROCESS, 'free')
  for (const as of ['nothing', 'dies', 'cut', 'gzip']) await at?.chat(`tokens=5&as=${as}`).catch(() => {})
  await waitUntil('all to be given back', async () => (await at?.used())?.[0] === 0)

  embedded = 0
  const gone = await testGateway(t, { upstream: 'http://127.0.0.1:1', policies: policies() })
  const options = { method: 'POST', headers: { host: 'acme.localhost' } }
  for (let i = 0; i < 15; i += 1) t.equal((await send(`${gone.url}/chat`, options)).status, 502)
})

t.test('a settling that Redis cannot hear is told later', async t => {
  if (redisCommand(t) === undefined) return
  embedded = 0
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const upstream = await startApp(t, model)
  const settings = `retryJitter: 0%\nredis: ${redis.url}\nstore: { deadline: 250ms, onError: closed }`
  const { url } = await testGateway(t, { upstream, policies: policies(), settings })
  const chat = (query: string) =>
    send(`${url}/chat?${query}`, { method: 'POST', headers: { host: 'acme.localhost' } })
  await waitUntil('Redis to count', async () => (await chat('tokens=0')).status === 200)
  const both = [chat('tokens=300&ms=1500'), chat('tokens=1700&ms=1500')]
  await waitUntil('both to be under way', async () => (await leftAt(url)) === 8000 - embedded)
  redis.pause()
  await waitUntil('Redis to be away', async () => (await chat('tokens=0')).status === 503)
  for (const one of both) t.equal((await one).status, 200)
  redis.resume()
  await waitUntil('both to be settled', async () => (await leftAt(url)) === 8000 - embedded)
})
