/** Report-only rules are evaluated however slow Redis is, and no request waits for them. */
import t from 'tap'
import { faultProxy } from '../helpers/faults.js'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { redisCommand, startRedis } from '../helpers/redis.js'
import { redisSettings } from '../helpers/stores.js'
import { waitUntil } from '../helpers/wait.js'

const RULE = `version: 1
kind: volumetric
rules:
  - id: recovery
    match: [POST /r]
    key: [project, email-or-flow]
    missing: skip
    quota: { requests: 2, per: 60s }
    mode: report-only
`

t.test(
  'a report-only rule with its key in the body records every refusal, even with a slow Redis',
  async t => {
    if (!redisCommand(t)) return
    const redis = await startRedis()
    t.teardown(() => redis.stop())
    const proxy = await faultProxy(redis.port)
    t.teardown(() => proxy.stop())
    const upstream = await startApp(t, (req, res) => {
      req.resume().on('end', () => res.end())
    })
    const settings = redisSettings(`redis://127.0.0.1:${proxy.port}`)
    const gateway = await testGateway(t, { upstream, settings, policies: { 'volumetric.yaml': RULE } })
    await proxy.set({ kind: 'latency', ms: 20 })
    const headers = { host: 'acme.localhost', 'content-type': 'application/json' }
    for (let i = 0; i < 6; i += 1) {
      const answer = await send(`${gateway.url}/r`, {
        method: 'POST',
        headers,
        body: '{"email":"a@example.com"}',
      })
      t.equal(answer.status, 200)
    }
    const records = () => gateway.lines.filter(({ decision }) => decision === 'would_deny')
    await waitUntil('every refusal is recorded', () => records().length === 4)
    const metrics = (await send(`${gateway.adminUrl}/metrics`)).body
    t.match(metrics, /sluice_decisions_total\{rule="recovery"[^\n]*outcome="would_limit"\} 4/)
  },
)
