/** What `sluice explain` says of routes that rewrite, answer or leave it to a preflight. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sluice } from '../helpers/command.js'

const GATEWAY = `version: 1
upstreams: { app: { url: "http://127.0.0.1:1" } }
routes:
  - { path: /v1/**, upstream: app, stripPrefix: /v1, addPrefix: /in, cors: { origins: ["https://app.test"] }, headers: { response: { set: { x-a: "1" } } } }
  - { path: /old/**, redirect: { to: "https://new.test{path}" } }
`
const PROJECTS = `version: 1
projects: [{ id: acme, plan: growth, environment: production, hosts: [acme.test] }]
`

function explaining(t: Test) {
  const folder = t.testdir({ policies: {} })
  writeFileSync(join(folder, 'gateway.yaml'), GATEWAY)
  writeFileSync(join(folder, 'projects.yaml'), PROJECTS)
  return (...args: string[]) => sluice(['explain', ...args, '--project', 'acme', '--config', folder])
}

t.test('the path that was asked for is matched, and the one that the upstream gets is shown', async t => {
  const explain = explaining(t)
  const { out } = await explain('GET', '/v1/a%2Bb?x')
  t.match(out, 'path: /v1/a+b (its normal form')
  t.match(out, 'upstream: app, as /in/a%2Bb?x')
  t.match(out, 'x-a: 1')
  const { forwarded } = JSON.parse((await explain('GET', '/v1/x', '--json')).out)
  t.equal(forwarded, '/in/x')
})

t.test('a route that answers itself is explained with its answer', async t => {
  const explain = explaining(t)
  const { out } = await explain('GET', '/old/x?y')
  t.match(out, '308, by the gateway itself, as the route says.')
  t.match(out, 'location: https://new.test/old/x?y')
  const { answer, upstream, forwarded } = JSON.parse((await explain('GET', '/old/x', '--json')).out)
  t.match([answer.status, upstream, forwarded], [308, null, null])
})

t.test('a preflight is explained as the gateway answers it', async t => {
  const explain = explaining(t)
  const asked = ['--header', 'origin: https://app.test', '--header', 'access-control-request-method: GET']
  const { out } = await explain('OPTIONS', '/v1/x', ...asked)
  t.match(out, '204, by the gateway itself')
  t.match(out, 'access-control-allow-origin: https://app.test')
})

t.test('a request that is refused before any limit is compared with none', async t => {
  const folder = t.testdir({
    'gateway.yaml': GATEWAY.replace(
      '"http://127.0.0.1:1"',
      '"http://127.0.0.1:1", methodOverride: x-http-method',
    ),
    'projects.yaml': PROJECTS,
    policies: {
      'limits.yaml': `version: 1
kind: project-limits
buckets: { all: ["*"], v1: [/v1/**] }
limits: [{ for: [{}], quotas: { all: { sustained: 3 }, v1: { sustained: 3 } } }]
`,
    },
  })
  const ask = ['explain', 'POST', '/v1/x', '--project', 'acme', '--config', folder]
  t.match((await sluice(ask)).out, /not all \(\*\): less specific than \/v1\/\*\*/)
  const { out } = await sluice([...ask, '--header', 'x-http-method: x x'])
  t.match(out, /400/)
  t.notMatch(out, 'specific')
})
