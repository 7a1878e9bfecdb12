/** Where requests go: by host, method and path, and to no upstream where a path is closed. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
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
