/** `sluice check` on what counts JSON-RPC calls. */
import t from 'tap'
import { sluice } from '../../helpers/command.js'

const GATEWAY =
  'version: 1\nupstreams: { a: { url: "http://127.0.0.1:1" } }\nroutes: [{ path: /**, upstream: a }]\n'

t.test('what can never be a JSON-RPC call is warned of', async t => {
  const rule = (id: string, match: string) =>
    `  - { id: ${id}, match: [${match}], key: [project, json-rpc], reads: true, quota: { requests: 5, per: 1m } }\n`
  const config = t.testdir({
    'gateway.yaml': GATEWAY,
    'projects.yaml': 'version: 1\nprojects: []\n',
    policies: {
      'limits.yaml': `version: 1
kind: project-limits
buckets:
  streams: { match: [GET /mcp], key: [json-rpc] }
  rest: ["*"]
limits: [{ for: [{}], quotas: { streams: { sustained: 5 }, rest: { sustained: 50 } } }]
`,
      'rules.yaml': `version: 1\nkind: volumetric\nrules:\n${rule('reads', 'GET /a, DELETE /a')}${rule('some', 'GET /b, POST /b')}${rule('every', '/c')}`,
    },
  })
  const { code, out } = await sluice(['check', '--config', config])
  const text = out.replace(/\s+/g, ' ')
  t.equal(code, 0)
  const reason = 'counts JSON-RPC calls, which are sent with POST, and none of its patterns can be one'
  t.match(text, `rules[0].key: warning: Rule "reads" ${reason}`)
  t.match(text, `buckets.streams.key: warning: Bucket "streams" ${reason}`)
  t.notMatch(text, /"(some|every)" counts JSON-RPC/)
  t.match(text, 'Any number of keys: one for each JSON-RPC method or tool, made-up ones included.')
})
