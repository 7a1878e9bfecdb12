/**
 * Rules that count by the upstream's response, as clients and operators see them: a whole gateway, on each counter
 * store.
 */
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { connect } from 'node:http2'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { costAfterAnswer } from '../../../gateway/decide/after-answer.js'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { type TestGateway, testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { matchList } from '../../helpers/lists.js'
import { redisUrl } from '../../helpers/redis.js'
import { onEachStore, redisSettings } from '../../helpers/stores.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { LIMITS, rulesOf } from './volumes.js'

t.jobs = 4

const LOGIN =
  'id: failed-logins, match: [POST /login], key: [client-ip], countWhen: { status: [401, 403] }, quota: { requests: 5, per: 1m }'
const TOKENS =
  'id: tokens, match: [POST /chat], key: [project], cost: { answerHeader: x-tokens-used }, quota: { requests: 1000, per: 1m }'

/** Once released, responds with what each request asks for in `x-answer` and `x-spend`. */
async function startModel(t: Test) {
  const waiting: (() => void)[] = []
  let heard = 0
  const url = await startApp(t, (req, res) => {
    heard += 1
    req.resume()
    const answer = () => {
      const spent = req.headers['x-spend']
      res.writeHead(
        Number(req.headers['x-answer'] ?? 200),
        spent === undefined ? {} : { 'x-tokens-used': spent },
      )
      res.end('done')
    }
    if (req.headers['x-wait'] === undefined) answer()
    else waiting.push(answer)
  })
  return {
    url,
    heard: () => heard,
    waiting: () => waiting.length,
    letGo() {
      for (const answer of waiting.splice(0)) answer()
    },
  }
}

async function begin(
  t: Test,
  settings = '',
  rules: string[] = [],
  more: Record<string, string> = {},
  head = '20s',
) {
  const model = await startModel(t)
  const policies = { 'volumetric.yaml': rulesOf(...rules), ...more }
  const gateway = await testGateway(t, { upstream: model.url, settings, policies, timeouts: patient(head) })
  return { ...asking(gateway), model, gateway }
}

/** On a busy test machine, a slow response must not run into the gateway's own timeouts. */
const patient = (head: string) => `{ connect: 20s, head: ${head}, idle: 20s }`

function asking(gateway: TestGateway) {
  const ask = (path: string, headers: Record<string, string> = {}, method = 'POST') =>
    send(gateway.url + path, { method, headers: { host: 'acme.localhost', ...headers } })
  return {
    ask,
    login: async (answer = 401, headers: Record<string, string> = {}) =>
      (await ask('/login', { 'x-answer': String(answer), ...headers })).status,
    chat: async (spend?: string) =>
      (await ask('/chat', spend === undefined ? {} : { 'x-spend': spend })).status,
  }
}

const times = async (count: number, go: () => Promise<number>) => {
  const seen: number[] = []
  for (let i = 0; i < count; i += 1) seen.push(await go())
  return seen
}

onEachStore(
  t,
  'a login after five failed ones gets 429 before the upstream, and successes are not counted',
  async (t, store) => {
    const { login, ask, model } = await begin(t, await store.settings(t), [
      `${LOGIN}, blockFor: 2m, mode: enforce`,
    ])
    t.same(await times(8, () => login(200)), Array(8).fill(200))
    t.same(await times(4, () => login(401)), Array(4).fill(401))
    t.equal(await login(500), 500, 'a status that is not listed is not counted')
    t.equal(await login(403), 403)
    const before = model.heard()
    const refused = await ask('/login', { 'x-answer': '200' })
    t.equal(refused.status, 429, 'the right password no longer helps')
    t.equal(refused.headers['retry-after'], '120', 'the refused request started the block')
    t.equal(refused.json().code, 'abnormal-usage')
    t.same(await times(3, () => login(200)), [429, 429, 429])
    t.equal(model.heard(), before, 'no refused request reaches the upstream')
    t.equal((await ask('/else')).status, 200)
  },
)

onEachStore(t, 'requests in flight together exceed the quota by their number at most', async (t, store) => {
  const { login, model } = await begin(t, await store.settings(t), [`${LOGIN}, mode: enforce`])
  t.same(await times(4, login), [401, 401, 401, 401])
  const together = Array.from({ length: 20 }, () => login(401, { 'x-wait': '1' }))
  await waitUntil('all in flight', () => model.waiting() === 20)
  model.letGo()
  const seen = await Promise.all(together)
  t.same(new Set(seen), new Set([401]))
  t.equal(await login(), 429)
  t.equal(model.heard(), 4 + 20, 'the refused one was not sent on')
})

onEachStore(t, 'the gateway’s own refusals and timeouts are not counted', async (t, store) => {
  const rule =
    'id: refusals, match: [POST /**], key: [client-ip], countWhen: { status: [4xx, 5xx] }, quota: { requests: 2, per: 1m }, mode: enforce'
  const { ask, gateway } = await begin(t, await store.settings(t), [rule], { 'limits.yaml': LIMITS }, '3s')
  const statuses = await times(6, async () => (await ask('/scarce')).status)
  t.same(statuses, [200, 200, 429, 429, 429, 429], 'four requests are refused by the bucket')
  const timedOut = await ask('/x', { 'x-wait': '1' })
  t.equal(timedOut.status, 504)
  t.equal((await ask('/x', { 'x-answer': '404' })).status, 404)
  t.equal((await ask('/x', { 'x-answer': '503' })).status, 503)
  t.equal((await ask('/x')).status, 429)
  matchList(
    t,
    gateway.lines.filter(({ rule }) => rule === 'refusals'),
    [{ decision: 'deny', counters: [{ policy: 'refusals', q: 2, used: 3, cost: 0 }] }],
  )
})

onEachStore(
  t,
  'a request costs what its response says, or 1 when that is no valid cost',
  async (t, store) => {
    const { chat, ask, gateway } = await begin(t, await store.settings(t), [`${TOKENS}, mode: enforce`])
    const used = async () => {
      const told = await send(`${gateway.adminUrl}/projects/acme/counters`)
      return told
        .json<{ counters: { rule: string; counters: { used: number }[] }[] }>()
        .counters.find(({ rule }) => rule === 'tokens')?.counters[0]?.used
    }
    const answer = await ask('/chat', { 'x-spend': '300' })
    t.equal(answer.headers['x-tokens-used'], '300', 'the field is passed on')
    let sum = 300
    for (const [spend, units] of [
      [undefined, 1],
      ['0', 0],
      ['-5', 1],
      ['many', 1],
      ['1e3', 1],
      ['10.2', 11],
      ['400', 400],
    ] as const) {
      t.equal(await chat(spend), 200)
      sum += units
      await waitUntil(`${spend}: ${sum}`, async () => (await used()) === sum)
    }
    t.equal(await chat('99999999999999999999'), 200, 'a cost larger than what is left is admitted')
    t.equal(await chat('1'), 429)
    t.equal(await used(), 1000)
  },
)

onEachStore(
  t,
  'a client that leaves before the response is charged 1, and counts for no status',
  async (t, store) => {
    const { model, gateway, chat, login } = await begin(t, await store.settings(t), [
      `${TOKENS.replace('1000', '2')}, mode: enforce`,
      `${LOGIN.replace('5', '1')}, mode: enforce`,
    ])
    const leave = async (path: string) => {
      const before = model.waiting()
      const sent = request(gateway.url + path, {
        method: 'POST',
        headers: { host: 'acme.localhost', 'x-wait': '1', 'x-answer': '401', 'x-spend': '9' },
      })
      sent.on('error', () => {})
      sent.end()
      await waitUntil('in flight', () => model.waiting() > before)
      sent.destroy()
    }
    await leave('/chat')
    await leave('/chat')
    await leave('/login')
    await waitUntil('two units', async () => (await chat('0')) === 429)
    t.same(await times(2, login), [401, 429])
  },
)

onEachStore(
  t,
  'a client that leaves while it holds a slot is charged what the response says',
  async (t, store) => {
    const model = await startModel(t)
    const gateway = await testGateway(t, {
      upstream: model.url,
      settings: (await store.settings(t)) ?? '',
      timeouts: patient('20s'),
      policies: {
        'volumetric.yaml': rulesOf(`${TOKENS}, mode: enforce`),
        'slots.yaml':
          'version: 1\nkind: in-flight\nrules: [{ id: slot, match: [POST /chat], key: [project], max: 9 }]\n',
      },
    })
    const sent = request(`${gateway.url}/chat`, {
      method: 'POST',
      headers: { host: 'acme.localhost', 'x-wait': '1', 'x-spend': '1000' },
    })
    sent.on('error', () => {})
    sent.end()
    await waitUntil('in flight', () => model.waiting() === 1)
    sent.destroy()
    await sleep(50)
    model.letGo()
    const { chat } = asking(gateway)
    await waitUntil('the charge', async () => (await chat('0')) === 429)
  },
)

onEachStore(t, 'a report-only rule records what it would refuse, and refuses nothing', async (t, store) => {
  const { login, gateway } = await begin(t, await store.settings(t), [
    `${LOGIN.replace('5', '2')}, mode: report-only`,
  ])
  t.same(await times(5, login), Array(5).fill(401))
  const records = () => gateway.lines.filter(({ decision }) => decision === 'would_deny')
  // A charge may arrive a moment after its response, so using up the quota may take one request more.
  await waitUntil('three records', async () => {
    if (records().length < 3) t.equal(await login(), 401)
    return records().length >= 3
  })
  t.match(records()[0], { rule: 'failed-logins', would_status: 429, sent_status: 401 })
})

onEachStore(t, 'explain shows these counters, and a reset clears them', async (t, store) => {
  const { login, gateway } = await begin(t, await store.settings(t), [`${LOGIN}, mode: enforce`])
  await times(5, login)
  const explain = async () =>
    (
      await send(`${gateway.adminUrl}/explain`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ method: 'POST', target: '/login', host: 'acme.localhost' }),
      })
    ).json<{ answer: { status: number | null }; rules: { rule: string; counters: { used: number }[] }[] }>()
  await waitUntil('five', async () => (await explain()).answer.status === 429)
  t.equal(await login(200), 429, 'the gateway refuses as explain said')
  const reset = await send(`${gateway.adminUrl}/counters/failed-logins?ip=127.0.0.1`, { method: 'DELETE' })
  t.equal(reset.status, 200)
  t.match(await explain(), {
    answer: { status: null },
    rules: [{ rule: 'failed-logins', counters: [{ used: 0 }] }],
  })
  t.equal(await login(), 401)
})

t.test('gateways that share a Redis refuse by what any of them counted', { buffered: true }, async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const [one, two] = await Promise.all(
    [1, 2].map(() => begin(t, redisSettings(url), [`${LOGIN}, mode: enforce`, `${TOKENS}, mode: enforce`])),
  )
  t.same(await times(5, () => (one as Awaited<ReturnType<typeof begin>>).login()), Array(5).fill(401))
  await waitUntil('the other', async () => (await two?.login(200)) === 429)
  t.equal(await two?.chat('1000'), 200)
  await waitUntil('the one', async () => (await one?.chat('1')) === 429)
})

t.test(
  'a WebSocket handshake counts as 101, and an HTTP/2 response by its status',
  { buffered: true },
  async t => {
    if (!canMakeCertificates(t)) return
    const server = createServer((_, res) => res.writeHead(401).end())
    const sockets = new WebSocketServer({ server, path: '/feed' })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const certificate = makeCertificate(t.testdir(), 'acme')
    const gateway = await testGateway(t, {
      upstream: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      tls: certificate,
      policies: {
        'volumetric.yaml': rulesOf(
          'id: opened, match: [GET /feed], key: [client-ip], countWhen: { status: [101] }, quota: { requests: 2, per: 1m }',
          LOGIN.replace('5', '2'),
        ),
      },
    })
    t.teardown(() => {
      for (const socket of sockets.clients) socket.terminate()
      server.close()
    })
    const open = async () => {
      const socket = new WebSocket(`${gateway.url.replace('https', 'wss')}/feed`, {
        rejectUnauthorized: false,
      })
      const [event] = await Promise.race([
        once(socket, 'open').then(() => [101]),
        once(socket, 'unexpected-response'),
      ])
      socket.on('error', () => {})
      socket.terminate()
      return event === 101 ? 101 : 429
    }
    t.same(await times(3, open), [101, 101, 429])

    const session = connect(gateway.url, { rejectUnauthorized: false })
    t.teardown(() => session.destroy())
    const login = async () => {
      const stream = session.request({ ':method': 'POST', ':path': '/login', ':authority': 'acme.localhost' })
      stream.end()
      stream.resume()
      const [headers] = await once(stream, 'response')
      return Number(headers[':status'])
    }
    t.same(await times(3, login), [401, 401, 429])
  },
)

t.test('countWhen matches a status by number or class, and the cost of a response is bounded', async t => {
  const cost = costAfterAnswer({ cost: { answerHeader: 'x' }, countWhen: { status: [200, '4xx'] } })
  const of = (status: number, value?: string) =>
    cost?.({ status, header: name => (name === 'x' ? value : undefined) })
  t.equal(of(200, '7'), 7)
  t.equal(of(404, '7'), 7)
  t.equal(of(201, '7'), 0)
  t.equal(of(0, '7'), 0)
  t.equal(of(200, '1000000000'), 1_000_000_000)
  t.equal(of(200, '1000000001'), 1_000_000_000)
  t.equal(of(200, '1, 2'), 1)
  t.equal(
    costAfterAnswer({ cost: 5 }),
    undefined,
    'a fixed cost without countWhen is charged before the response',
  )
  t.equal(
    costAfterAnswer({ cost: 5, countWhen: { status: [401] } })?.({ status: 401, header: () => undefined }),
    5,
  )
})
