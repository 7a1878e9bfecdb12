/** The gateway and `explain` are asked the same question: status and all fields of ours are the same. */
import t from 'tap'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'

const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { all: ["*"], few: [/few] }
limits: [{ for: [{}], quotas: { all: { burst: 100, sustained: 1000 }, few: { burst: 1, sustained: 1 } } }]
`,
  'floods.yaml': `version: 1
kind: volumetric
rules:
  - { id: flood, match: [POST /flood], key: [project], quota: { requests: 1, per: 60s } }
  - { id: device, match: [POST /device], key: ["header:x-device"], missing: deny, quota: { requests: 1, per: 60s } }
`,
}
const OURS = /^(ratelimit|x-ratelimit-|retry-after|cache-control|allow|access-control-|vary|content-type)/

t.test('explain says what the gateway answers, for every refusal', async t => {
  const upstream = await startApp(t, (_req, res) => res.end())
  const gateway = await testGateway(t, { upstream, policies: POLICIES })
  const asked: [code: string, method: string, path: string, spend: number][] = [
    ['quota-exceeded', 'GET', '/few', 1],
    ['abnormal-usage', 'POST', '/flood', 1],
    ['quota-exceeded', 'POST', '/device', 0],
    ['bad-target', 'GET', '/a%2Fb', 0],
  ]
  for (const [code, method, path, spend] of asked) {
    const headers = { host: 'acme.localhost', origin: 'https://page.test' }
    for (let i = 0; i < spend; i += 1) await send(gateway.url + path, { method, headers })
    const explained = await fetch(`${gateway.adminUrl}/explain`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        method,
        target: path,
        host: headers.host,
        headers: [['origin', headers.origin]],
      }),
    })
    const { answer } = (await explained.json()) as {
      answer: { status: number; code: string; fields: [string, string][] }
    }
    const given = await send(gateway.url + path, { method, headers })
    t.equal(given.json<{ code: string }>().code, code)
    t.match(answer, { status: given.status, code })
    const fields = Object.entries(given.headers).filter(([name]) => OURS.test(name))
    t.same(
      Object.fromEntries(answer.fields.map(([name, value]) => [name.toLowerCase(), value])),
      Object.fromEntries(fields),
      `${code}: the fields`,
    )
  }
})
