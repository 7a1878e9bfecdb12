/** Where requests go: by host, method and path, and to no upstream where a path is closed. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parsePattern } from '../../gateway/policy/pattern.js'
import { Routes } from '../../gateway/policy/routes.js'
import { sluice } from '../helpers/command.js'

const GATEWAY = `version: 1
upstreams:
  shop: { url: "http://127.0.0.1:1" }
  docs: { url: "http://127.0.0.1:2" }
routes:
  - { host: docs.example.com, path: /**, upstream: docs }
  - { host: shop.example.com, path: "GET /cart/**", upstream: shop }
  - { path: /help/**, upstream: docs }
  - { path: /deep/**, upstream: shop }
closed:
  - { prefix: /deep/admin/ }
  - { path: /deep/one }
  - { contains: /.git }
  - { host: docs.example.com, prefix: /internal }
identify: [host]
unknownProject: { plan: any, environment: live }
`
const PROJECTS = 'version: 1\nplans: [any]\nenvironments: [live]\nprojects: []\n'

function configured(t: Test, gateway = GATEWAY) {
  const folder = t.testdir({ policies: {} })
  writeFileSync(join(folder, 'gateway.yaml'), gateway)
  writeFileSync(join(folder, 'projects.yaml'), PROJECTS)
  const upstream = async (host: string, path: string, method = 'GET') =>
    JSON.parse((await sluice(['explain', method, path, '--host', host, '--config', folder, '--json'])).out)
      .upstream as string | null
  return { folder, upstream }
}

t.test('a route may name a host and a method; what a host does not route falls to the rest', async t => {
  const { upstream } = configured(t)
  t.equal(await upstream('docs.example.com', '/x'), 'docs')
  t.equal(await upstream('DOCS.example.com.:80', '/x'), 'docs', 'in any spelling of the host')
  t.equal(await upstream('shop.example.com', '/cart/7'), 'shop')
  t.equal(await upstream('shop.example.com', '/cart/7', 'POST'), null)
  t.equal(await upstream('shop.example.com', '/help/x'), 'docs', 'the routes without a host')
  t.equal(await upstream('other.example.com', '/cart/7'), null)
})

t.test('a wildcard takes every host below a name, and what no better host routes', async t => {
  const wild = '  - { host: "*.example.com", path: /**, upstream: shop }\n'
  const { upstream } = configured(t, GATEWAY.replace('  - { path: /help', `${wild}  - { path: /help`))
  t.equal(await upstream('docs.example.com', '/x'), 'docs', 'the exact host wins')
  t.equal(await upstream('shop.example.com', '/help/x'), 'shop', 'before the routes without a host')
  t.equal(await upstream('a.B.example.com.:443', '/x'), 'shop')
  t.equal(await upstream('example.com', '/help/x'), 'docs')
  t.equal(await upstream('evil-example.com', '/x'), null)
})

t.test('a closed path goes nowhere, however it is spelt', async t => {
  const { upstream } = configured(t)
  const host = 'shop.example.com'
  for (const path of [
    '/deep/admin/x',
    '/deep/admin',
    '/deep/ADMIN/x',
    '/deep/%61dmin/x',
    '/deep//admin/x',
    '/deep/x/../admin/x',
    '/deep/one',
    '/deep/one/',
    '/deep/.git/config',
    '/help/x/.gitignore',
  ]) {
    t.equal(await upstream(host, path), null, path)
  }
  t.equal(await upstream(host, '/deep/administrator'), 'shop', 'a prefix with a slash ends at a segment')
  t.equal(await upstream(host, '/deep/one/more'), 'shop')
  t.equal(await upstream('docs.example.com', '/internals'), null, 'a prefix without one does not')
  t.equal(await upstream(host, '/help/internals'), 'docs')
})

t.test('two routes of one host for the same requests are refused; of two hosts they are not', async t => {
  const route = '  - { host: docs.example.com, path: /**, upstream: shop }\n'
  const { folder } = configured(t, GATEWAY.replace('closed:', `${route}closed:`))
  t.match(await sluice(['check', '--config', folder]), {
    code: 1,
    err: /routes\[4\]\.path: The path "\/\*\*" ties with "\/\*\*", which is routed already/,
  })
  const fine = configured(t, GATEWAY.replace('closed:', `${route.replace('docs', 'www')}closed:`))
  t.match(await sluice(['check', '--config', fine.folder]), { code: 0 })
})

t.test('thousands of hosts and routes cost a request what a few cost', async t => {
  const costOf = (hosts: number, paths: number): number => {
    const routes = new Routes([], new Map())
    for (let i = 0; i < hosts; i++) {
      for (let j = 0; j < paths; j++) {
        const host = i % 2 === 0 ? `h${i}.test` : `*.h${i}.test`
        routes.add(host, parsePattern(`/p${j}/{id}/**`), { upstream: 'app', auth: 'optional', scopes: [] })
      }
    }
    const asked = Array.from({ length: 100 }, (_, i) => ({
      method: 'GET',
      host: `${i % 2 === 0 ? '' : 'x.'}h${i % hosts}.test`,
      path: `/p${i % paths}/7/more`,
      header: () => undefined,
    }))
    for (const one of asked) t.equal(routes.find(one)?.value.upstream, 'app', `${one.host}${one.path}`)
    let least = Number.POSITIVE_INFINITY
    for (let round = 0; round < 20; round++) {
      const startedAt = performance.now()
      for (let i = 0; i < 5000; i++) routes.find(asked[i % asked.length] as (typeof asked)[0])
      least = Math.min(least, performance.now() - startedAt)
    }
    return least / 5
  }
  costOf(2, 5)
  const [few, many] = [costOf(2, 5), costOf(1000, 10)]
  t.comment(`${few.toFixed(2)} us with 10 routes, ${many.toFixed(2)} us with 10,000`)
  t.ok(many < 3 * few + 1, `${few} and ${many} us`)
})
