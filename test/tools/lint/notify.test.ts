/** What `sluice check` says of addresses that notifications cannot go to by default. */
import t from 'tap'
import { loadOrFail } from '../../../gateway/configured/load.js'
import { quiet } from '../../../tools/config.js'
import { lint } from '../../../tools/lint/lint.js'

const SECRET = 'canary-secret-0123456789'
const to = (url: string) => `{ at: [80%], url: "${url}", secret: ${SECRET} }`

t.test('http and private addresses are warned of, wherever they are written', async t => {
  const folder = t.testdir({
    'gateway.yaml':
      'version: 1\nupstreams: { a: { url: "http://127.0.0.1:1" } }\nroutes: [{ path: /**, upstream: a }]\n',
    'projects.yaml': `version: 1
projects:
  - id: acme
    plan: growth
    environment: production
    hosts: [acme.example]
    overrides: { all: { notify: ${to('https://10.0.0.1/')} } }
`,
    policies: {
      'limits.yaml': `version: 1
kind: project-limits
buckets: { all: ["*"], good: [/good] }
limits:
  - for: [{}]
    quotas:
      all: { burst: 5, notify: ${to('http://hooks.example.com/')} }
      good: { burst: 5, notify: ${to('https://hooks.example.com/')} }
`,
      'flood.yaml': `version: 1
kind: volumetric
rules:
  - { id: flood, match: ["*"], key: [project], mode: enforce, quota: { requests: 5, per: 1h, notify: ${to('https://hooks.example.com:25/')} } }
`,
    },
  })
  const loaded = await loadOrFail(folder, {}, quiet)
  const found = lint(loaded, { now: Date.now(), reportOnlyDays: 30 }).filter(({ path }) =>
    /notify/.test(path),
  )
  t.same(
    found.map(({ severity, path, message }) => `${severity} ${path}: ${message}`),
    [
      'warning rules[0].quota.notify.url: The gateway does not call this address: port 25 is not allowed; docs/webhooks.md lists the refused ports.',
      'warning limits[0].quotas.all.notify.url: The gateway does not call this address: http is not encrypted: use https; WEBHOOK_ALLOW_HTTP=true allows http.',
      'warning projects[0].overrides.all.notify.url: The gateway does not call this address: 10.0.0.1 is not a public address; WEBHOOK_ALLOW_PRIVATE=true allows it.',
    ],
  )
})
