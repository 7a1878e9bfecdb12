/** Other spellings of a guard, which its gateway reads as well, keep its paths closed after `sluice import`. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sluice } from '../helpers/command.js'

const TRAEFIK = `
  services: { app: { loadBalancer: { servers: [{ url: "http://127.0.0.1:9000" }] } } }
  middlewares:
    auth: { basicAuth: { users: ["a:b"] } }
    slow: { rateLimit: { average: "5", burst: "5" } }
`
const traefik = (router: string): string =>
  `http:\n  routers:\n    admin: { rule: "PathPrefix(\`/admin/\`)", service: app, ${router} }\n    all: { rule: "PathPrefix(\`/\`)", service: app }${TRAEFIK}`

const kong = (more: string): string => `_format_version: "3.0"
services:
  - name: app
    id: 11111111-1111-4111-8111-111111111111
    url: http://127.0.0.1:9000
    routes: [{ name: all, paths: [/], strip_path: false }]
${more}`

async function imported(t: Test, format: string, text: string) {
  const folder = t.testdir({ 'gateway.conf': text })
  const made = join(folder, 'made')
  const told = await sluice(['import', format, join(folder, 'gateway.conf'), '--output', made])
  const read = (file: string): string => readFileSync(join(made, file), 'utf8')
  const passes = async (host: string, path: string): Promise<boolean> => {
    const { out } = await sluice(['explain', 'GET', path, '--host', host, '--config', made, '--json'])
    const { upstream, answer } = JSON.parse(out)
    return upstream !== null && (answer.status === null || answer.status < 400)
  }
  return { ...told, read, passes }
}

t.test('Traefik: a list may be one text with commas', async t => {
  for (const list of ['auth', '"slow,auth"']) {
    const { passes } = await imported(t, 'traefik', traefik(`middlewares: ${list}`))
    t.notOk(await passes('localhost', '/admin/x'), list)
    t.ok(await passes('localhost', '/x'))
  }
})

t.test('Traefik: a number may be a text', async t => {
  const { read } = await imported(t, 'traefik', traefik('middlewares: [slow]'))
  t.match(read('policies/project-limits.yaml'), 'burst: 5')
})

t.test('Traefik: words in another case are refused, names in any case are not', async t => {
  const refused = await imported(t, 'traefik', traefik('Middlewares: [auth]'))
  t.equal(refused.code, 2)
  t.match(refused.err, /:3:\d+ http\.routers\.admin\.Middlewares: .*reads "Middlewares" as "middlewares"/)
  const named = traefik('middlewares: [RateLimit]').replace('slow:', 'RateLimit:')
  t.match((await imported(t, 'traefik', named)).read('policies/project-limits.yaml'), 'burst: 5')
})

t.test('Kong: null and an empty list are the same as nothing', async t => {
  const guarded = await imported(
    t,
    'kong',
    kong('plugins: [{ name: basic-auth, service: null, route: null, consumer: null }]'),
  )
  t.notOk(await guarded.passes('localhost', '/'), 'the plugin holds for everything')
  for (const paths of ['null', '[]']) {
    const route = `{ name: admin, hosts: [admin.example.com], paths: ${paths}, headers: null, service: app, plugins: [{ name: basic-auth }] }`
    const { passes } = await imported(t, 'kong', kong(`routes: [${route}]`))
    t.notOk(await passes('admin.example.com', '/'), `paths: ${paths}`)
    t.ok(await passes('localhost', '/'))
  }
})

t.test('Kong: services and consumers may be called by their id', async t => {
  const { read } = await imported(
    t,
    'kong',
    kong(`
routes: [{ name: more, paths: [/more], strip_path: false, service: { id: 11111111-1111-4111-8111-111111111111 } }]
consumers: [{ username: bob, id: 22222222-2222-4222-8222-222222222222 }]
keyauth_credentials: [{ key: bob-key-0123456789, consumer: { id: 22222222-2222-4222-8222-222222222222 } }]
`),
  )
  t.match(read('gateway.yaml'), '{ path: /more/**, upstream: app }')
  t.match(read('projects.yaml'), 'apiKeyHashes')
})

t.test('Kong: a plugin without names for its key keeps the default one beside others', async t => {
  const { read } = await imported(
    t,
    'kong',
    kong(`
routes:
  - { name: one, paths: [/one], strip_path: false, service: app, plugins: [{ name: key-auth, config: { key_names: [x-key] } }] }
  - { name: two, paths: [/two], strip_path: false, service: app, plugins: [{ name: key-auth }] }
consumers: [{ username: bob, keyauth_credentials: [{ key: bob-key-0123456789 }] }]
`),
  )
  t.match(read('gateway.yaml'), /header: x-key \}\n.*header: apikey \}/)
})

t.test('nginx: a directive may have the name of a property that every object has', async t => {
  const { err } = await imported(
    t,
    'nginx',
    'constructor on; server { location / { proxy_pass http://127.0.0.1:9000; } }',
  )
  t.match(err, 'behind constructor "on", which is not known and may refuse requests')
})
