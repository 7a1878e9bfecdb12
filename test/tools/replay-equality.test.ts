/** The replay can be trusted: for the same traffic on the same clock it decides each request as a gateway does. */
import { Agent } from 'node:http'
import t, { type Test } from 'tap'
import { loadOrFail } from '../../gateway/configured/load.js'
import { quiet } from '../../tools/config.js'
import { LogIntake } from '../../tools/log/intake.js'
import { readLogs } from '../../tools/log/read.js'
import { FormatReader } from '../../tools/replay/format.js'
import { Simulation } from '../../tools/replay/simulation.js'
import type { Traffic } from '../../tools/replay/traffic.js'
import { holdClocks } from '../helpers/clocks.js'
import { recordingIo } from '../helpers/command.js'
import { randomOf } from '../helpers/decision-lines.js'
import { type TestGateway, testGateway } from '../helpers/gateway.js'
import { type Received, send, startApp } from '../helpers/http.js'

const POLICIES = {
  'project-limits.yaml': `version: 1
kind: project-limits
buckets:
  whoami: [/sessions/whoami]
  fixed: [/fixed/**]
  token: ["/token/{id}"]
  catch-all: ["*"]
limits:
  - for: [{ plans: [growth], environments: [production] }]
    quotas:
      whoami: { burst: 3, sustained: 40 }
      fixed: { burst: 2, sustained: 30, algorithm: fixed-window }
      token: { burst: 4, sustained: 25, algorithm: token-bucket }
      catch-all: { burst: 6, sustained: 90 }
  - for: [{ plans: [developer, production, essential, scale, enterprise] }]
    quotas: { catch-all: { burst: 2, sustained: 20 } }
  - for: [{ plans: [growth], environments: [development, staging] }]
    quotas: { catch-all: { burst: 2, sustained: 20 } }
`,
  'in-flight.yaml': `version: 1
kind: in-flight
rules:
  - { id: write, match: ["POST /items/{id}"], key: [project, full-path], max: 1, mode: enforce }
  - { id: writes, match: [POST /items/**], key: [project], max: 2, mode: report-only }
  - { id: recovery, match: [POST /fixed/**], key: [project, path, email-or-flow], missing: skip, max: 1, mode: report-only }
`,
  'volumetric.yaml': `version: 1
kind: volumetric
rules:
  - { id: flood, match: [POST /**], key: [client-ip], quota: { requests: 8, per: 5s }, blockFor: 8s, missing: skip, mode: enforce }
  - { id: tenants, match: [POST /items/**], key: ["header:x-tenant", auth], quota: { requests: 5, per: 3s }, missing: shared, mode: report-only }
  - { id: methods, match: [DELETE /**], key: [method, ja4], when: { authenticated: true }, quota: { requests: 2, per: 2s }, missing: deny, mode: enforce }
  - { id: failures, match: [/other], key: [client-ip], when: { networks: [192.0.2.0/24] }, reads: true, countWhen: { status: [4xx] }, quota: { requests: 3, per: 4s }, mode: enforce }
  - { id: heavy, match: [/items/**], key: [project], cost: 3, quota: { requests: 8, per: 5s }, mode: report-only }
`,
}
const PATHS = [
  '/sessions/whoami',
  '/fixed/a',
  '/fixed/b?flow=1',
  '/token/7',
  '/items/1',
  '/items/2',
  '/other',
]
const ACME = 'acme.localhost'
const HOSTS = [ACME, ACME, ACME, ACME, 'dev.localhost', 'nobody.example', 'somebody.example']

/** Sends random requests, some of which the upstream holds while others are sent. */
async function sendTraffic(t: Test, countBy: string, actions: number): Promise<TestGateway> {
  const held: (() => void)[] = []
  const upstream = await startApp(t, (req, res) => {
    const answer = () => res.writeHead(req.url === '/other' ? 404 : 200).end('done')
    if (req.headers['x-slow'] === undefined) answer()
    else held.push(answer)
  })
  const gateway = await testGateway(t, {
    upstream,
    settings: `trustedProxies: [127.0.0.1]
log: { decisions: all }
unknownProject: { plan: developer, environment: production, countBy: ${countBy} }`,
    timeouts: '{ connect: 100s, head: 1h, idle: 1h }',
    policies: POLICIES,
  })
  const clock = holdClocks(t, Date.UTC(2026, 0, 5))
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const random = randomOf(7)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const records = () => gateway.lines.filter(({ msg, beside }) => msg === 'decision' && beside !== undefined)
  const mainRecords = () => new Set(records().map(({ id }) => id)).size
  let ended = 0
  const settled = async (what: string) => {
    for (let i = 0; mainRecords() < ended; i++) {
      if (i > 10_000) throw new Error(`no record of ${what}`)
      await new Promise(resolve => setImmediate(resolve))
    }
  }

  const slow: Promise<Received>[] = []
  for (let i = 0; i < actions; i++) {
    clock.ms += 1 + Math.floor(random() * (random() < 0.06 ? 20_000 : 150))
    if (held.length > 0 && random() < 0.05) {
      held.shift()?.()
      await slow.shift()
      ended += 1
      await settled('a held request')
      continue
    }
    const isSlow = random() < 0.2
    const request = () => {
      const path = pick(PATHS)
      const method = pick(['GET', 'GET', 'POST', 'POST', 'DELETE', 'OPTIONS'])
      return send(`${gateway.url}${path}`, {
        method,
        agent,
        headers: {
          host: pick(HOSTS),
          'x-forwarded-for': pick(['192.0.2.1', '192.0.2.2', '2001:db8::1', '2001:db8::2']),
          ...(random() < 0.5 ? { 'x-tenant': pick(['a', 'b']) } : {}),
          ...(random() < 0.5 ? { authorization: 'Bearer x' } : {}),
          ...(random() < 0.7 ? { 'x-ja4-fingerprint': 't13d1516h2_8daaf6152771_02713d6af862' } : {}),
          ...(method === 'OPTIONS' && random() < 0.5
            ? { origin: 'https://a.example', 'access-control-request-method': 'POST' }
            : {}),
          ...(isSlow ? { 'x-slow': '1' } : {}),
        },
      })
    }
    if (!isSlow) {
      // Several at the same moment, one after the other.
      for (let burst = Math.ceil(random() * 8); burst > 0; burst--) {
        await request()
        ended += 1
        await settled('a request')
      }
      continue
    }
    const before = held.length
    let isRefused = false
    const answer = request()
    void answer.then(() => {
      isRefused = true
    })
    while (held.length === before && !isRefused) await new Promise(resolve => setImmediate(resolve))
    if (held.length > before) slow.push(answer)
    else ended += 1
  }
  clock.ms += 10
  for (const answer of held) answer()
  await Promise.all(slow)
  ended += slow.length
  await settled('the last requests')
  return gateway
}

interface Line {
  readonly id: string
  readonly decision: string
  readonly rule: string | null
  readonly sent_status: number
}

for (const countBy of ['client', 'host']) {
  t.test(
    `replay decides each request of random traffic as the gateway did, unknown callers by ${countBy}`,
    async t => {
      const gateway = await sendTraffic(t, countBy, 400)
      const lines = gateway.lines.filter(({ msg }) => msg === 'decision') as unknown as Line[]
      const then = new Map<string, { refused: boolean; rule: string | null; would: (string | null)[] }>()
      for (const { id, decision, rule, sent_status } of lines) {
        const known = then.get(id) ?? { refused: false, rule: null, would: [] }
        if (decision === 'would_deny') known.would.push(rule)
        else {
          known.refused = decision === 'deny'
          known.rule = rule
          if ((sent_status === 429) !== known.refused) t.fail(`the client of ${id} saw ${sent_status}`)
        }
        then.set(id, known)
      }
      const refused = [...then.values()].filter(one => one.refused)
      t.ok(then.size > 1000, `${then.size} requests`)
      t.ok(refused.length > 200 && refused.length < then.size * 0.8, `${refused.length} of them refused`)
      if (countBy === 'host') {
        // Counted by client, the unknown callers are too many to take all slots.
        const refusers = new Set(refused.map(({ rule }) => rule))
        t.same([...refusers].sort(), [
          ...['catch-all', 'failures', 'fixed', 'flood', 'methods', 'token', 'whoami', 'write'],
        ])
        const observers = new Set([...then.values()].flatMap(({ would }) => would))
        t.same(
          [...observers].sort(),
          ['heavy', 'recovery', 'tenants', 'writes'],
          'each report-only rule would have refused some requests',
        )
      }

      const simulation = new Simulation(await loadOrFail(gateway.folder, {}, quiet))
      const differences: unknown[] = []
      let judgedRequests = 0
      await replayLines(lines, async traffic => {
        const { id } = traffic.facts ?? { id: '' }
        const judged = await simulation.judge(traffic)
        if (judged.result === 'unserved') throw new Error(`${id} was not served: ${judged.code}`)
        const { outcomes, reportOnly } = judged.verdict
        const limiting = outcomes.find(({ result }) => result === 'limited') ?? outcomes[0]
        const now = {
          refused: judged.result === 'refused',
          rule: limiting?.rule.id ?? null,
          would: reportOnly.filter(({ result }) => result === 'limited').map(({ rule }) => rule.id),
        }
        const before = then.get(id)
        judgedRequests += 1
        if (JSON.stringify(now) !== JSON.stringify(before))
          differences.push({ id, at: traffic.at, before, now })
      })
      t.equal(judgedRequests, then.size, 'every request is replayed once')
      t.same(differences.slice(0, 3), [], `${differences.length} differ`)
    },
  )
}

async function replayLines(
  lines: readonly object[],
  take: (traffic: Traffic) => Promise<void>,
): Promise<void> {
  const formats = new FormatReader(
    { format: 'auto', map: [], host: undefined },
    { dropped: new Map(), admitted: 0, sample: 1 },
  )
  const text = lines.map(line => `${JSON.stringify(line)}\n`).join('')
  const { io } = recordingIo({ stdin: text })
  await readLogs({
    names: ['-'],
    reader: () => formats.reader(),
    take,
    intake: new LogIntake(),
    io,
    now: Date.UTC(2026, 1, 1),
  })
}
