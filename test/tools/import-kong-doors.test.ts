/** What Kong closes in ways that are easily overlooked stays closed after `sluice import`. */
import t from 'tap'
import { sluice } from '../helpers/command.js'
import { imported, kong } from '../helpers/import-asked.js'

const HOST = 'a.example.com'
const OPEN = '{ name: open, paths: [/] }'

t.test('a key is asked for where the anonymous consumer is refused, unknown, or none', async t => {
  const asked = (anonymous: string) =>
    imported(
      t,
      'kong',
      kong(
        [
          `{ name: a, paths: [/a], plugins: [{ name: key-auth, config: { anonymous: "${anonymous}" } }] }`,
          '{ name: o, paths: [/o] }',
        ],
        `consumers:
  - { username: guest }
  - { username: refused, plugins: [{ name: request-termination, config: { status_code: 401 } }] }
  - { username: grouped, groups: [{ name: none }] }
consumer_groups: [{ name: none, plugins: [{ name: request-termination }] }]`,
      ),
    )
  for (const anonymous of ['refused', 'nobody', '']) {
    const { err, passes } = await asked(anonymous)
    t.notOk(await passes(HOST, '/a'), anonymous)
    t.ok(await passes(HOST, '/o'))
    t.match(err, 'Lost: /a/** was behind key-auth.')
  }
  const guest = await asked('guest')
  t.ok(await guest.passes(HOST, '/a'))
  t.match(guest.err, 'Lost: "request-termination" of the consumer "grouped".')
})

t.test('a plugin of a consumer, or of another route, does not take the place of that of a route', async t => {
  const routes = ['{ name: a, paths: [/a] }', '{ name: o, paths: [/o] }']
  const limits = `plugins:
  - { name: rate-limiting, route: a, consumer: vip, config: { minute: 100000, limit_by: ip } }
  - { name: rate-limiting, route: a, config: { minute: 5, limit_by: ip } }
consumers: [{ username: vip }]`
  const limited = await imported(t, 'kong', kong(routes, limits))
  t.match(limited.policy('project-limits'), 'sustained: 5')
  t.match(limited.err, 'Left out: a limit of vip for some routes alone.')
  const keys = `plugins:
  - { name: key-auth, service: app, route: a, config: { anonymous: guest } }
  - { name: basic-auth }
  - { name: key-auth }
consumers: [{ username: guest }]`
  const guarded = await imported(t, 'kong', kong(routes, keys))
  t.match(guarded.err, 'Lost: /o/** was behind basic-auth, behind key-auth.')
  t.match(guarded.err, 'Lost: /a/** was behind basic-auth.')
})

t.test('a guard holds where Kong prefers its route to an open one', async t => {
  const guard = 'plugins: [{ name: basic-auth }]'
  const guards = {
    'more precise by its host than another by its method': [
      '{ name: open, paths: [/admin/x], methods: [GET] }',
      `{ name: shut, hosts: [${HOST}], paths: [/admin], ${guard} }`,
    ],
    'beside empty lists': [
      '{ name: open, paths: [/], hosts: [], methods: [], headers: {} }',
      `{ name: shut, hosts: [${HOST}], paths: [/admin], ${guard} }`,
    ],
    'by an expression': [OPEN, `{ name: shut, expression: 'http.path ^= "/admin"', ${guard} }`],
    'on a host with a final dot': [OPEN, `{ name: shut, hosts: ["${HOST}."], paths: [/admin], ${guard} }`],
  }
  for (const [how, routes] of Object.entries(guards)) {
    const { passes } = await imported(t, 'kong', kong(routes))
    t.notOk(await passes(HOST, '/admin/x'), how)
  }
})

t.test(
  'before Kong 3, a path with other characters is a regular expression, and the longest path decides',
  async t => {
    const guard = 'plugins: [{ name: basic-auth }]'
    const expression = [OPEN, `{ name: shut, paths: ["/adm.*x$"], ${guard} }`]
    const { passes } = await imported(t, 'kong', kong(expression, '', '1.1'))
    t.notOk(await passes(HOST, '/admin/x'))
    t.ok(await passes(HOST, '/x'))
    const open = await imported(t, 'kong', kong([OPEN, '{ name: b, paths: ["/b(c|d)"] }'], '', '2.1'))
    t.match(open.err, 'Left out: the path "/b(c|d)". Patterns are not regular expressions.')
    const routes = ['{ name: open, paths: [/ab] }', `{ name: shut, paths: [/a, /quite/long], ${guard} }`]
    const old = await imported(t, 'kong', kong(routes, '', '2.1'))
    t.notOk(await old.passes(HOST, '/ab'))
    const present = await imported(t, 'kong', kong(routes))
    t.ok(await present.passes(HOST, '/ab'))
  },
)

t.test('a merge key is refused: it may stand for a guard', async t => {
  const routes = [
    '&a { name: a, paths: [/a], plugins: [{ name: basic-auth }] }',
    '{ <<: *a, name: b, paths: [/b] }',
  ]
  const folder = t.testdir({ 'kong.yaml': kong(routes) })
  const { code, err } = await sluice(['import', 'kong', `${folder}/kong.yaml`])
  t.equal(code, 2)
  t.match(
    err,
    /kong\.yaml:7:11 \S+: Merge keys \("<<"\) are not read\. Write out here what this one stands for\./,
  )
})

t.test('settings that plugins share are refused: they may be what guards', async t => {
  const plugins =
    'plugins:\n  - { name: ip-restriction, _config: office }\n_plugin_configs: { office: { allow: [10.0.0.0/8] } }'
  const folder = t.testdir({ 'kong.yaml': kong([OPEN], plugins), 'kong.conf': 'trusted_ips = 10.0.0.0/8\n' })
  const { code, err } = await sluice(['import', 'kong', `${folder}/kong.yaml`, `${folder}/kong.conf`])
  t.equal(code, 2)
  t.match(err, /kong\.yaml:8:29 \S+: Settings that plugins share \("_config"\) are not read\./)
})

t.test('fields in which Kong tells who asks are no longer to be believed', async t => {
  const rest = `plugins: [{ name: key-auth }]
consumers: [{ username: a, plugins: [{ name: request-transformer, config: { add: { headers: ["X-Role:admin"] } } }] }]`
  const { err } = await imported(t, 'kong', kong([OPEN], rest))
  t.match(err, /Lost: the fields X-Consumer-ID, X-Consumer-Username, .* must not believe it\./)
  t.match(err, 'Lost: the field X-Role, which Kong sets or removes.')
  const none = await imported(t, 'kong', kong([OPEN]))
  t.notMatch(none.err, 'X-Consumer')
})

t.test('plugins of a group hold for its consumers, wherever the file says who they are', async t => {
  const members = {
    'the consumer, by name': ['groups: [{ name: barred }],', '', ''],
    'the consumer, by id': ['groups: [{ id: g1 }],', '', ''],
    'the group': ['', 'consumers: [{ username: guest }],', ''],
    'the list of memberships': [
      '',
      '',
      'consumer_group_consumers: [{ consumer: guest, consumer_group: barred }]',
    ],
  }
  for (const [where, [own, group, list]] of Object.entries(members)) {
    const { err, passes } = await imported(
      t,
      'kong',
      kong(
        ['{ name: a, paths: [/a], plugins: [{ name: key-auth, config: { anonymous: guest } }] }', OPEN],
        `consumers: [{ ${own} username: guest }]
consumer_groups: [{ ${group} id: g1, name: barred, plugins: [{ name: request-termination }] }]
${list}`,
      ),
    )
    t.notOk(await passes(HOST, '/a'), where)
    t.ok(await passes(HOST, '/'), where)
    t.match(err, 'Lost: "request-termination" of the consumer "guest".', where)
  }
})

t.test('what request-size-limiting refuses and maxBody does not is reported', async t => {
  const { err } = await imported(
    t,
    'kong',
    kong(
      [
        '{ name: a, paths: [/a], plugins: [{ name: request-size-limiting, config: { require_content_length: true } }] }',
      ],
      `plugins: [{ name: request-size-limiting, consumer: small, service: app, config: { allowed_payload_size: 1 } }]
consumers: [{ username: small }]`,
    ),
  )
  t.match(err, 'Left out: "require_content_length". A body without a length is counted as it comes.')
  t.match(err, 'Left out: the largest body of the consumer "small".')
})
