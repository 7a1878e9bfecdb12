import t from 'tap'
import { Metrics } from '../../../gateway/observe/metrics.js'
import { finished, outcome, reading, rule } from './events.js'

const linesOf = async (metrics: Metrics, name: string) =>
  (await metrics.text())
    .split('\n')
    .filter(line => line.startsWith(`${name}{`) || line.startsWith(`${name} `))

t.test('every documented series exists from the start, with help and type', async t => {
  const text = await new Metrics('1.2.3').text()
  for (const [name, type] of [
    ['requests_total', 'counter'],
    ['request_duration_seconds', 'histogram'],
    ['overhead_seconds', 'histogram'],
    ['decisions_total', 'counter'],
    ['inflight', 'gauge'],
    ['store_errors_total', 'counter'],
    ['store_fallback_active', 'gauge'],
    ['policy_info', 'gauge'],
    ['policy_reloads_total', 'counter'],
  ] as const) {
    t.match(text, `# TYPE sluice_${name} ${type}\n`)
    t.match(text, new RegExp(`# HELP sluice_${name} \\S`))
  }
  t.match(new Metrics('1.2.3').contentType, /^text\/plain; version=/)
})

t.test('requests are counted by upstream, method, code and source', async t => {
  const metrics = new Metrics('1.2.3')
  const observer = metrics.observer()
  for (let i = 0; i < 3; i++) observer.finished(finished())
  observer.finished(finished({ method: 'BREW', status: 429, source: 'gateway' }))
  observer.finished(finished({ verdict: undefined, upstream: '', status: 0 }))
  const expected = [
    'sluice_requests_total{upstream="identity",method="GET",code="200",source="upstream"} 3',
    'sluice_requests_total{upstream="identity",method="other",code="429",source="gateway"} 1',
    'sluice_requests_total{upstream="",method="GET",code="0",source="upstream"} 1',
  ]
  t.same(await linesOf(metrics, 'sluice_requests_total'), expected)
  t.same(await linesOf(metrics, 'sluice_requests_total'), expected, 'a second scrape shows the same numbers')
  t.same(await linesOf(metrics, 'sluice_request_duration_seconds_count'), [
    'sluice_request_duration_seconds_count 5',
  ])
  t.same(await linesOf(metrics, 'sluice_overhead_seconds_count'), ['sluice_overhead_seconds_count 4'])
  t.match(await metrics.text(), 'sluice_overhead_seconds_bucket{le="0.00005"} 4\n')
})

t.test('decisions are counted by rule and outcome, those near the limit separately', async t => {
  const metrics = new Metrics('1.2.3')
  const observer = metrics.observer()
  const shadow = rule({ id: 'session-delete', mode: 'report-only' })
  const slots = reading({ quota: 1, used: 1, windowMs: undefined })
  const cases: [string, Parameters<typeof finished>[0]][] = [
    ['allowed', { outcomes: [outcome({ readings: [reading({ used: 7 })] })] }],
    ['near', { outcomes: [outcome({ readings: [reading({ used: 1 }), reading({ used: 8 })] })] }],
    ['allowed', { outcomes: [outcome({ readings: [slots] })] }],
    ['limited', { outcomes: [outcome({ result: 'limited' })] }],
    ['error', { outcomes: [outcome({ result: 'unavailable', store: 'none' })] }],
    ['error', { outcomes: [outcome({ store: 'none' })] }],
    ['would_limit', { outcomes: [], reportOnly: [outcome({ rule: shadow, result: 'limited' })] }],
    ['allowed', { outcomes: [], reportOnly: [outcome({ rule: shadow })] }],
  ]
  for (const [, event] of cases) observer.finished(finished(event))
  const lines = (await linesOf(metrics, 'sluice_decisions_total')).map(line =>
    /rule="([^"]+)",plan="growth",environment="production",mode="([^"]+)",outcome="([^"]+)"} (\d+)/
      .exec(line)
      ?.slice(1),
  )
  t.same(lines, [
    ['catch-all', 'enforce', 'allowed', '2'],
    ['catch-all', 'enforce', 'near', '1'],
    ['catch-all', 'enforce', 'limited', '1'],
    ['catch-all', 'enforce', 'error', '2'],
    ['session-delete', 'report-only', 'would_limit', '1'],
    ['session-delete', 'report-only', 'allowed', '1'],
  ])
})

t.test('no label holds a key, a project or a path', async t => {
  const metrics = new Metrics('1.2.3')
  metrics.observer().finished(finished({ facts: { path: '/canary-path' } }))
  t.notMatch(await metrics.text(), /canary|acme|whoami/)
})

t.test(
  'the counters of refused reloads and connections start at 0, so alerts see the first refusal',
  async t => {
    const text = await new Metrics('1.0.0').text()
    t.match(text, 'sluice_policy_reloads_total{result="refused"} 0\n')
    t.match(text, 'sluice_connections_refused_total{cap="all"} 0\n')
    t.match(text, 'sluice_connections_refused_total{cap="client"} 0\n')
  },
)

t.test('the policy, the store and slots in flight have metrics', async t => {
  const metrics = new Metrics('1.2.3')
  metrics.policyLoaded('sha256:1')
  metrics.policyLoaded('sha256:2')
  metrics.storeError('take')
  metrics.fallbackActive(true)
  metrics.inflight('identities-write', 2)
  metrics.inflight('identities-write', -1)
  const text = await metrics.text()
  t.same(
    await linesOf(metrics, 'sluice_policy_info'),
    ['sluice_policy_info{rev="sha256:2"} 1'],
    'only the revision in force is shown',
  )
  t.match(text, 'sluice_policy_reloads_total{result="loaded"} 2\n')
  t.match(text, 'sluice_store_errors_total{op="take"} 1\n')
  t.match(text, 'sluice_store_fallback_active 1\n')
  t.match(text, 'sluice_inflight{rule="identities-write"} 1\n')
  metrics.fallbackActive(false)
  t.match(await metrics.text(), 'sluice_store_fallback_active 0\n')
})
