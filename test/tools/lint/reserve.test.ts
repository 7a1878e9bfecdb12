/** `sluice check` on costs that are settled by the body of a response. */
import t from 'tap'
import { sluice } from '../../helpers/command.js'

t.test('routes whose responses may come compressed are named where a cost is read in their body', async t => {
  const bucket = (name: string, settle: string) =>
    `  ${name}: { match: [POST /*/${name}], cost: { reserve: { default: 5 }, settle: { ${settle} } } }\n`
  const config = t.testdir({
    'gateway.yaml': `version: 1
upstreams: { app: { url: "http://127.0.0.1:1" } }
routes:
  - { path: /v1/**, upstream: app }
  - { path: /v2/**, upstream: app, headers: { request: { remove: [accept-encoding] } } }
  - { path: /v3/**, upstream: app, headers: { request: { set: { accept-encoding: identity } } } }
  - { path: /v4/**, split: [{ upstream: app, share: 100% }] }
  - { path: /old/**, redirect: { to: "https://new.test{path}" } }
`,
    'projects.yaml': 'version: 1\nprojects: []\n',
    policies: {
      'limits.yaml': `version: 1
kind: project-limits
buckets:
${bucket('field', 'answerHeader: x-tokens')}${bucket('body', 'answerHeader: x-tokens, jsonBody: usage.total')}${bucket('chat', 'jsonBody: usage.total, sse: usage.total')}
limits: [{ for: [{}], quotas: { field: { burst: 9 }, body: { burst: 9 }, chat: { burst: 9 } } }]
`,
    },
  })
  const { code, out } = await sluice(['check', '--config', config])
  const text = out.replace(/\s+/g, ' ')
  t.equal(code, 0)
  const reason =
    'warning: In compressed responses the gateway cannot read usage.total: such requests cost what "unknown: keep" says'
  t.match(text, `buckets.body.cost.settle: ${reason}`)
  t.match(text, `buckets.chat.cost.settle: ${reason}`)
  t.match(text, '{ request: { remove: [accept-encoding] } } at the routes to /v1/** and /v4/**.')
  t.notMatch(text, 'buckets.field')
})
