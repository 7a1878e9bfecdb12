/** `trial:` beside a quota: it counts every request, refused or not, reports what it would do, and does nothing. */
import { Redis } from 'ioredis'
import t from 'tap'
import { send } from '../helpers/http.js'
import { redisUrl, scriptCalls } from '../helpers/redis.js'
import { onEachStore, redisSettings } from '../helpers/stores.js'
import { waitUntil } from '../helpers/wait.js'
import { rulesOf, start } from './decide/volumes.js'

interface Counters {
  readonly counters: readonly { rule: string; counters: readonly { policy: string; used: number }[] }[]
}

const quotaWith = (quota: string, trial: string, more = '') => `version: 1
kind: project-limits
buckets: { all: ["*"] }
limits: [{ for: [{}], quotas: { all: { ${quota}, trial: { ${trial} }${more} } } }]
`

onEachStore(t, 'a stricter trial reports the requests it would have refused', async (t, store) => {
  const here = await start(t, (await store.settings(t)) as string, {
    'limits.yaml': quotaWith('burst: 100, sustained: 4', 'burst: 100, sustained: 2'),
  })
  const answers = []
  for (let i = 0; i < 6; i += 1) answers.push(await here.post('/x'))
  t.strictSame(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 429, 429],
  )
  t.match(answers[2]?.headers['ratelimit-policy'], /^"all\.burst";q=100;w=1, "all\.sustained";q=4;w=60$/)
  const would = (line: Record<string, unknown>) => line.decision === 'would_deny'
  await waitUntil('all is told', () => here.lines.filter(would).length === 4)
  const records = here.lines.filter(line => 'decision' in line)
  t.strictSame(records.map(({ decision, mode, rule }) => `${decision} ${mode} ${rule}`).sort(), [
    ...Array(2).fill('deny enforce all'),
    ...Array(4).fill('would_deny report-only all.trial'),
  ])
  t.match(records.find(would), {
    counters: [{ policy: 'all.trial.burst' }, { policy: 'all.trial.sustained', q: 2 }],
  })
  const metrics = (await send(`${here.adminUrl}/metrics`)).body
  t.match(metrics, /rule="all\.trial"[^\n]*mode="report-only",outcome="would_limit"\} 4/)
})

onEachStore(t, 'a looser trial counts requests that the quota refuses', async (t, store) => {
  const here = await start(t, (await store.settings(t)) as string, {
    'limits.yaml': quotaWith('burst: 100, sustained: 2', 'burst: 100, sustained: 5'),
  })
  t.strictSame(await here.statuses(7, '/x'), [200, 200, 429, 429, 429, 429, 429])
  const told = () =>
    here.lines.filter(({ decision, rule }) => `${decision} ${rule}` === 'would_deny all.trial')
  await waitUntil('of seven that were asked, five would have passed', () => told().length === 2)
  const usedOf = async (rule: string) => {
    const { counters } = (await send(`${here.adminUrl}/projects/acme/counters`)).json() as Counters
    return counters.find(one => one.rule === rule)?.counters[1]?.used
  }
  t.strictSame([await usedOf('all'), await usedOf('all.trial')], [2, 5])
  const reset = await send(`${here.adminUrl}/counters/all.trial?project=acme`, { method: 'DELETE' })
  t.match(reset.json(), { reset: 'all.trial' })
  t.equal((await here.post('/x')).status, 429, 'the quota is counted separately')
  await waitUntil('the trial is asked anew', async () => (await usedOf('all.trial')) === 1)
  t.equal(told().length, 2)
})

onEachStore(t, 'a trial may have other windows than its quota, and uses the same cost', async (t, store) => {
  const here = await start(t, (await store.settings(t)) as string, {
    'limits.yaml': quotaWith(
      'sustained: 8',
      'windows: [{ name: hour, requests: 5, per: 1h }, { name: month, requests: 100, per: month }]',
    ).replace('["*"]', '{ match: ["*"], cost: 2 }'),
  })
  t.strictSame(await here.statuses(5, '/x'), [200, 200, 200, 200, 429])
  const told = () => here.lines.filter(({ decision }) => decision === 'would_deny')
  await waitUntil('the third, fourth and fifth would be refused', () => told().length === 3)
  t.match(told()[0], {
    rule: 'all.trial',
    counters: [
      { policy: 'all.trial.hour', q: 5, used: 4 },
      { policy: 'all.trial.month', q: 100, used: 4 },
    ],
  })
})

t.test('a bucket and its trial take one script call, and a refused request takes no second one', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const here = await start(t, redisSettings(url), {
    'limits.yaml': quotaWith('burst: 1000, sustained: 21', 'burst: 1000, sustained: 9'),
    'volumetric.yaml': rulesOf(
      'id: flood, match: [POST /x], key: [client-ip], quota: { requests: 1000, per: 60s }, enforceFor: 40%',
    ),
  })
  const redis = new Redis(url)
  t.teardown(() => redis.disconnect())
  await here.post('/y')
  const before = await scriptCalls(redis)
  t.strictSame(await here.statuses(20, '/x'), Array(20).fill(200))
  t.equal((await scriptCalls(redis)) - before, 20)
  t.strictSame(await here.statuses(10, '/y'), Array(10).fill(429))
  t.ok((await scriptCalls(redis)) - before <= 30)
})
