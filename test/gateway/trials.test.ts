/** `trial:` beside a quota: it counts every request, refused or not, reports what it would do, and does nothing. */
import { Redis } from 'ioredis'
import t from 'tap'
import { sluice } from '../helpers/command.js'
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

const flood = (quota: string, more = '') => ({
  'volumetric.yaml': rulesOf(
    `id: flood, match: [POST /x], key: [client-ip], quota: { ${quota} }${more && `, ${more}`}`,
  ),
})

onEachStore(t, "a volumetric rule's trial reports what its quota would have refused", async (t, store) => {
  const here = await start(
    t,
    (await store.settings(t)) as string,
    flood('requests: 8, per: 60s, trial: { requests: 4, per: 60s }', 'cost: 2, blockFor: 120s'),
  )
  t.strictSame(await here.statuses(6, '/x'), [200, 200, 200, 200, 429, 429])
  const would = () => here.lines.filter(({ decision }) => decision === 'would_deny')
  await waitUntil('the last four are told', () => would().length === 4)
  t.match(would()[0], {
    rule: 'flood.trial',
    kind: 'volumetric',
    mode: 'report-only',
    counters: [{ policy: 'flood.trial', q: 4, cost: 2 }],
  })
  const metrics = (await send(`${here.adminUrl}/metrics`)).body
  t.match(metrics, /rule="flood\.trial"[^\n]*mode="report-only",outcome="would_limit"\} 4/)
  const put = await send(`${here.adminUrl}/rules/flood.trial/mode`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ mode: 'enforce', why: 'A flood.' }),
  })
  t.match(put, { status: 422, body: /\\"flood.trial\\" is a trial, which only reports/ })
  const { rules } = (await send(`${here.adminUrl}/live`)).json() as {
    rules: { id: string; trial: boolean }[]
  }
  t.strictSame(
    rules.map(({ id, trial }) => [id, trial]),
    [
      ['flood', false],
      ['flood.trial', true],
    ],
  )
})

t.test('a trial counts all keys, whatever share the rule is enforced for', async t => {
  const here = await start(
    t,
    '',
    flood('requests: 3, per: 60s, trial: { requests: 1, per: 60s }', 'enforceFor: 0%'),
  )
  t.strictSame(await here.statuses(4, '/x'), [200, 200, 200, 200])
  const told = (rule: string) => here.lines.filter(line => line.rule === rule).length
  await waitUntil('both are told', () => told('flood') === 1 && told('flood.trial') === 3)
})

t.test('explain and check show the trial of a rule beside it', async t => {
  const config = (quota: string) =>
    t.testdir({
      'gateway.yaml':
        'version: 1\nupstreams: { a: { url: "http://127.0.0.1:1" } }\nroutes: [{ path: /**, upstream: a }]\n',
      'projects.yaml': 'version: 1\nprojects: []\n',
      policies: flood(quota),
    })
  const tried = config('requests: 8, per: 60s, trial: { requests: 4, per: 60s }')
  const flat = async (...args: string[]) => (await sluice(args)).out.replace(/\s+/g, ' ')
  const explained = await flat('explain', 'POST', '/x', '--config', tried)
  t.match(explained, 'flood.trial (volumetric, report-only)')
  t.match(explained, 'trial: of flood: counts beside it, and only reports')
  t.match(explained, 'flood.trial: 4 per minute')
  t.notMatch(await flat('explain', 'POST', '/y', '--config', tried), 'flood.trial')
  t.match(await flat('check', '--table', '--config', tried), 'flood.trial 4 per 60 s client-ip report-only')
})

t.test('a trial that tells nothing new is warned of', async t => {
  const check = async (requests: number) => {
    const config = t.testdir({
      'gateway.yaml':
        'version: 1\nupstreams: { a: { url: "http://127.0.0.1:1" } }\nroutes: [{ path: /**, upstream: a }]\n',
      'projects.yaml': 'version: 1\nprojects: []\n',
      policies: flood(`requests: 8, per: 60s, trial: { requests: ${requests}, per: 60s }`),
    })
    return (await sluice(['check', '--config', config])).out.replace(/\s+/g, ' ')
  }
  t.match(await check(8), 'The trial of "flood" is the quota in force')
  t.match(await check(9), 'The trial of "flood" is looser than the quota in force')
  t.notMatch(await check(7), 'The trial of')
})
