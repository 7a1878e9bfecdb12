/** The live figures of a gateway with several workers: of all of them, and without one that does not respond. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { LiveChanges, LiveHistory } from '../../../gateway/admin/live-snapshot.js'
import { gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { send, startApp } from '../../helpers/http.js'
import { matchList } from '../../helpers/lists.js'
import { openLive } from '../../helpers/live.js'
import { oneBucket } from '../../helpers/policies.js'
import { redisUrl } from '../../helpers/redis.js'

const TOTAL = 40

t.test('a live stream adds up the figures of all workers, and names one that does not respond', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const upstream = await startApp(t, (_req, res) => res.end('done'))
  const gatewayYaml = `version: 1
listen: { host: 127.0.0.1, port: 0, workers: 2, maxEventLoopDelay: 1h, workerTimeout: 20s }
admin: { host: 127.0.0.1, port: 0 }
redis: ${redis}
store: { deadline: 5s }
upstreams: { app: { url: "${upstream}" } }
routes: [{ path: /**, upstream: app }]
`
  const folder = writeConfig(t, gatewayYaml, { 'limits.yaml': oneBucket(30) })
  const gateway = await gatewayProcess(t, folder)
  const live = await openLive(t, gateway.adminUrl)
  const first = await live.next('both workers', one => one.workers.length === 2)
  matchList(t, first.workers, [
    { answers: true, rss_bytes: Number },
    { answers: true, rss_bytes: Number },
  ])
  t.notOk('process' in first)
  const ask = () => send(gateway.url, { headers: { host: 'acme.localhost', connection: 'close' } })
  const statuses: number[] = []
  for (let i = 0; i < TOTAL; i += 1) statuses.push((await ask()).status)
  const refused = statuses.filter(status => status === 429).length
  t.equal(refused, 10)
  const seen = await live.next('all of it', one => one.projects[0]?.last_hour.requests === TOTAL)
  matchList(t, seen.projects, [{ id: 'acme', last_hour: { requests: TOTAL, refused } }])
  matchList(t, seen.rules, [{ id: 'all', last_hour: { limited: refused } }])
  matchList(t, seen.closest, [{ rule: 'all', project: 'acme', used: 30, quota: 30 }])
  t.match(seen.store, { kind: 'redis', state: 'ok' })

  const forwarded = { host: 'acme.localhost', connection: 'close', 'x-forwarded-for': '198.51.100.7' }
  // Of so many connections, each worker sees some.
  for (let i = 0; i < 20; i += 1) await send(gateway.url, { headers: forwarded })
  const told = await live.next('the forwarded field', one => one.untrusted_forwarding !== null)
  t.match(told.untrusted_forwarding, { field: 'x-forwarded-for', from: '127.0.0.0/24' })
  const state = (await send(`${gateway.adminUrl}/state`)).json()
  t.match(state.untrustedForwarding, { field: 'x-forwarded-for' }, 'whichever worker saw it')
  t.equal(gateway.out().split('not believed').length - 1, 1, 'one line for all workers')

  const { revision } = seen
  writeFileSync(join(folder, 'policies', 'limits.yaml'), oneBucket(60))
  await live.next('the new revision', one => one.revision !== revision)
  const { from, changes } = (await send(`${gateway.adminUrl}/changes`)).json<LiveChanges>()
  t.equal(from, revision)
  t.equal(changes.length, 2)
  t.match(changes[0], { sentence: 'all: 30 → 60 per second, 30 → 60 per minute' })

  const [stuck] = seen.workers
  process.kill(stuck?.pid as number, 'SIGSTOP')
  t.teardown(() => process.kill(stuck?.pid as number, 'SIGKILL'))
  const without = await live.next('the other one', one => one.missing.length > 0)
  t.same(without.missing, [stuck?.pid])
  t.match(
    without.workers.find(({ pid }) => pid === stuck?.pid),
    { rss_bytes: null, loop_delay_ms: null },
  )
  const before = live.snapshots.length
  await sleep(3200)
  const after = live.snapshots.length - before
  t.ok(after >= 2, `${after} snapshots in 3.2 s do not wait for the stopped worker`)
  const history = (await send(`${gateway.adminUrl}/live/history?rule=all`)).json<object>() as LiveHistory
  t.equal(history.step_ms, 10_000)
  process.kill(stuck?.pid as number, 'SIGCONT')
  await live.next('both again', one => one.missing.length === 0)
})
