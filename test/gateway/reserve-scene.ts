/** Gateways whose requests reserve what only their responses tell, and an upstream that tells it in many ways. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import fc from 'fast-check'
import type { Test } from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { redisUrl } from '../helpers/redis.js'
import { waitUntil } from '../helpers/wait.js'

const QUOTA = 10_000
export const policies = (
  unknown = 'keep',
  quota = 'windows: [{ name: hour, requests: 10000, per: 1h }]',
) => ({
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
export function model(req: IncomingMessage, res: ServerResponse): void {
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
export interface Place {
  readonly name: string
  /** Null if it cannot be had here. */
  open(t: Test): Promise<string | undefined | null>
  readonly quota?: string
  /** Of the property. */
  readonly runs: number
}

export const onRedis = async (t: Test) => (await redisUrl(t)) ?? null

export async function scene(t: Test, { open, quota }: Place, unknown?: string): Promise<Scene | undefined> {
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
    for (const { url } of all) counted.push(QUOTA - (await leftAt(url)) - asking.cost)
    return counted
  }
  await waitUntil('every gateway to reach its store', async () => (await used()).every(Number.isFinite))
  return { chat, used }
}

/** What the requests cost with which a test asks how much is left. */
export const asking = { cost: 0 }

/** What a gateway says is left; not a number if its store did not answer, which costs nothing. */
export async function leftAt(url: string): Promise<number> {
  const { headers } = await send(`${url}/embed`, { method: 'POST', headers: { host: 'acme.localhost' } })
  const rest = /;r=(\d+)/.exec(String(headers.ratelimit))?.[1]
  if (rest !== undefined) asking.cost += 10
  return Number(rest)
}

/** What holds wherever it is counted. */
export function settles(t: Test, place: Place): void {
  const isLeased = place.quota?.includes('lease') === true

  t.test(`${place.name}, a request costs what its response says`, async t => {
    asking.cost = 0
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
    await costs('tokens=10&as=nothing', '{"max_tokens":5,"max_to\u212aens":70}', 70)
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
        asking.cost = 0
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
        const rest = Math.min(4000, QUOTA - spent - asking.cost)
        await waitUntil(`${rest} to be left`, async () => {
          const { status } = await at.chat(`tokens=0`, { max_tokens: rest })
          return status === 200
        })
      }),
      { numRuns: place.runs, endOnFailure: true },
    )
  })
}
