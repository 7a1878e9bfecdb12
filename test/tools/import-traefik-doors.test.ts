/** What Traefik closes in ways that are easily overlooked stays closed after `sluice import`. */
import t from 'tap'
import { sluice } from '../helpers/command.js'
import { GUARDED, imported, traefik } from '../helpers/import-asked.js'

const REST = { 'PathPrefix(`/`)': 'priority: 1' }

t.test('a guarded rule that cannot be read closes everything', async t => {
  const some = (matcher: string): string =>
    Array.from({ length: 11 }, (_, i) => `${matcher}(\`${matcher === 'Host' ? '' : '/'}a${i}\`)`).join(' || ')
  const rules = {
    'It can be met in more than 100 ways': `(${some('PathPrefix')}) && (${some('Host')})`,
    'has escapes. Write it in backquotes': 'PathPrefix("/\\x61dmin")',
  }
  for (const [why, rule] of Object.entries(rules)) {
    const { err, passes } = await imported(t, 'traefik', traefik({ ...REST, [rule]: GUARDED }))
    t.notOk(await passes('a1', '/a1'), why)
    t.notOk(await passes('localhost', '/admin'), why)
    t.match(err, why)
  }
})

t.test('a host is read as requests have it', async t => {
  const { passes } = await imported(t, 'traefik', traefik({ ...REST, 'Host(`A.example.com.`)': GUARDED }))
  t.notOk(await passes('a.example.com', '/'))
  t.ok(await passes('b.example.com', '/'))
  for (const host of ['*.example.com', 'a.example.com:80']) {
    const wild = await imported(t, 'traefik', traefik({ ...REST, [`Host(\`${host}\`)`]: GUARDED }))
    t.notOk(await wild.passes('a.example.com', '/'), host)
  }
})

t.test('a name of another provider is not that of the file', async t => {
  const { err, passes } = await imported(
    t,
    'traefik',
    traefik({
      'PathPrefix(`/own`)': 'middlewares: [plain@file]',
      'PathPrefix(`/other`)': 'middlewares: [plain@docker]',
    }),
  )
  t.ok(await passes('localhost', '/own'))
  t.notOk(await passes('localhost', '/other'))
  t.match(err, 'behind the middleware "plain@docker", which is not in this file')
  const elsewhere = await imported(t, 'traefik', traefik(REST).replace('service: app', 'service: app@docker'))
  t.notOk(await elsewhere.passes('localhost', '/'))
})

t.test('a router with parents has what they ask for', async t => {
  const { err, passes } = await imported(
    t,
    'traefik',
    traefik({ 'PathPrefix(`/api`)': 'parentRefs: [gate]', 'PathPrefix(`/`)': '' }),
  )
  t.notOk(await passes('localhost', '/api'))
  t.ok(await passes('localhost', '/x'))
  t.match(err, 'Lost: /api/** was behind the router gate.')
})

t.test(
  'a router is on the default entry points, and ports beside those of the web may be reachable by fewer',
  async t => {
    const routers = traefik({ 'PathPrefix(`/api`)': 'entryPoints: [web]', 'PathPrefix(`/admin`)': '' })
    const points = (web: number, admin: string): string =>
      `entryPoints: { web: { address: ":${web}" }, admin: { address: ":9000"${admin} } }`
    const apart = await imported(t, 'traefik', routers, points(80, ', asDefault: true'))
    t.ok(await apart.passes('localhost', '/api'))
    t.notOk(await apart.passes('localhost', '/admin'))
    for (const alike of [points(80, ''), points(8000, ', asDefault: true')]) {
      const { passes } = await imported(t, 'traefik', routers, alike)
      t.ok(await passes('localhost', '/admin'), alike)
    }
  },
)

t.test('the priority of a rule is its length in bytes', async t => {
  const { passes } = await imported(
    t,
    'traefik',
    traefik({ 'Path(`/k`) || Path(`/aaaa`)': '', 'Path(`/k`) || Path(`/üüü`)': GUARDED }),
  )
  t.notOk(await passes('localhost', '/k'))
})

t.test(
  'what redirects to https has no route, and takes no paths from those that are reached by https',
  async t => {
    const secure = {
      'Host(`a.example.com`)': `entryPoints: [websecure], tls: {}, ${GUARDED}`,
      'Host(`b.example.com`)': 'entryPoints: [websecure], tls: {}',
    }
    const plainly = 'Host(`a.example.com`) || Host(`b.example.com`) || Host(`c.example.com`)'
    const ways = [
      'redirectScheme: { scheme: https }',
      'redirectRegex: { regex: "^http://(.*)", replacement: "https://$1" }',
    ]
    for (const way of ways) {
      const text = traefik({ ...secure, [plainly]: 'entryPoints: [web], middlewares: [plain]' })
      const { err, passes } = await imported(t, 'traefik', text.replace('headers: {}', way))
      t.notOk(await passes('a.example.com', '/'), way)
      t.ok(await passes('b.example.com', '/'), way)
      t.notOk(await passes('c.example.com', '/'), way)
      t.match(err, 'Left out: the router "r2". It redirects to https')
    }
    const points =
      'entryPoints: { web: { address: ":80", http: { redirections: { entryPoint: { to: websecure } } } }, websecure: { address: ":443" } }'
    const byPoint = await imported(
      t,
      'traefik',
      traefik({ ...secure, [plainly]: 'entryPoints: [web]' }),
      points,
    )
    t.notOk(await byPoint.passes('a.example.com', '/'))
    t.ok(await byPoint.passes('b.example.com', '/'))
  },
)

t.test('a host that is redirected to another one has no route', async t => {
  const { passes } = await imported(
    t,
    'traefik',
    traefik({
      ...REST,
      'Host(`www.example.com`)': 'tls: {}, middlewares: [plain]',
      'Host(`shop.example.com`)': 'tls: {}, middlewares: [plain]',
      'Host(`example.com`)': `tls: {}, ${GUARDED}`,
    }).replace(
      'headers: {}',
      'redirectRegex: { regex: "^https?://www\\\\.(.*)", replacement: "https://$1" }',
    ),
  )
  t.notOk(await passes('www.example.com', '/'))
  t.ok(await passes('shop.example.com', '/'), 'the expression is of another host')
})

t.test('those who do not meet a condition stay where the router for them sent them', async t => {
  const { err, passes } = await imported(
    t,
    'traefik',
    traefik({
      'Host(`a.example.com`)': '',
      'Host(`a.example.com`) && PathPrefix(`/staff`) && !ClientIP(`10.0.0.0/8`)': '',
      'Host(`b.example.com`)': '',
      'Host(`b.example.com`) && !HeaderRegexp(`Cookie`, `session=.+`)': '',
    }),
  )
  t.ok(await passes('a.example.com', '/'))
  t.notOk(await passes('a.example.com', '/staff/x'))
  t.notOk(await passes('b.example.com', '/'))
  t.match(err, '/staff/** was of the router "r1" by !ClientIP(10.0.0.0/8). It is under "closed"')
})

t.test('fields in which Traefik passes on certificates are no longer to be believed', async t => {
  const text = traefik({ 'PathPrefix(`/`)': 'middlewares: [plain]' })
  const { err } = await imported(
    t,
    'traefik',
    text.replace('headers: {}', 'passTLSClientCert: { pem: true }'),
  )
  t.match(err, /Lost: the fields X-Forwarded-Tls-Client-Cert and .* must not believe it\./)
})

t.test('a template is refused: it may stand for a guard', async t => {
  const text = traefik({ 'PathPrefix(`/`)': 'middlewares: {{ env "GUARDS" }}' })
  const folder = t.testdir({ 'dynamic.yaml': text })
  const { code, err } = await sluice(['import', 'traefik', `${folder}/dynamic.yaml`])
  t.equal(code, 2)
  t.match(err, /dynamic\.yaml:5:63: Templates \("\{\{"\) are not filled in\./)
})

t.test('an inFlightReq without an amount above 0 refuses every request', async t => {
  for (const amount of ['amount: 0', 'amount: -1', 'sourceCriterion: { requestHost: true }']) {
    const { err, passes } = await imported(
      t,
      'traefik',
      traefik({ ...REST, 'PathPrefix(`/none`)': 'middlewares: [none]' }).replace(
        'middlewares: {',
        `middlewares: { none: { inFlightReq: { ${amount} } },`,
      ),
    )
    t.notOk(await passes('localhost', '/none'), amount)
    t.ok(await passes('localhost', '/'), amount)
    t.match(err, 'Lost: /none/** was closed by inFlightReq, with no amount above 0.', amount)
  }
})
