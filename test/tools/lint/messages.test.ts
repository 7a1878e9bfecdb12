/** `sluice check` on rules that count the messages of WebSockets. */
import t from 'tap'
import { sluice } from '../../helpers/command.js'

const GATEWAY = `version: 1
upstreams: { a: { url: "http://127.0.0.1:1" } }
routes:
  - { path: /a/**, upstream: a }
  - { path: /old, redirect: { to: "https://acme.test/a" } }
`

t.test('rules whose requests can open no WebSocket are warned of', async t => {
  const rule = (id: string, match: string, more = '') =>
    `  - { id: ${id}, match: [${match}], key: [project], quota: { requests: 5, per: 1m }${more} }\n`
  const message = ', count: message'
  const config = t.testdir({
    'gateway.yaml': GATEWAY,
    'projects.yaml': 'version: 1\nprojects: []\n',
    policies: {
      'rules.yaml': `version: 1\nkind: volumetric\nrules:\n${[
        rule('writes', 'POST /a/b, PUT /a/b', message),
        rule('moved', 'GET /old', message),
        rule('chat', 'GET /a/chat', message),
        rule('stricter', 'GET /a/chat'),
      ].join('')}`,
    },
  })
  const { code, out } = await sluice(['check', '--config', config])
  const text = out.replace(/\s+/g, ' ')
  t.equal(code, 0)
  const counts = 'counts the messages of WebSockets,'
  t.match(
    text,
    `warning: Rule "writes" ${counts} which are opened with GET, and none of its patterns matches one, so it counts nothing.`,
  )
  t.match(
    text,
    `warning: Rule "moved" ${counts} and no route leads from its patterns to an upstream, which would have to open one, so it counts nothing.`,
  )
  t.notMatch(text, /Rule "chat"/, 'neither useless nor shadowed by a rule that counts requests')
  t.match(text, '"writes", "moved" and "chat" count the messages of WebSockets')
})
