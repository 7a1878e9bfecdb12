/** Routes on the operator's page and on the admin port: where requests go, and what is asked of them. */
import t from 'tap'
import type { RouteList } from '../../../gateway/admin/route-list.js'
import { launchBrowser } from '../../helpers/browser.js'
import { send } from '../../helpers/http.js'
import { findings, operated, row, visit } from './operator.js'

const ROUTES = [
  '{ host: api.acme.test, path: /v1/**, upstream: app, stripPrefix: /v1, addPrefix: /internal, auth: required, scopes: [read] }',
  '{ host: "*.acme.test", path: GET /old, redirect: { to: "https://acme.test{path}" } }',
  '{ path: /robots.txt, respond: { body: none }, cors: { origins: ["https://acme.test"] } }',
  '{ path: /**, upstream: app }',
]

t.test('routes on the operator’s page', async t => {
  const browser = await launchBrowser(t)
  if (!browser) return
  const gateway = await operated(t, '', 'identify: [api-key, host]\n', ROUTES)

  await t.test('each has a row that says where it leads and what it asks for', async t => {
    const page = await visit(t, browser, gateway.adminUrl)
    await page.getByRole('cell', { name: '/robots.txt' }).waitFor()
    t.match(
      await row(page, 'routes', '/v1/**').innerText(),
      /api\.acme\.test\s+\/v1\/\*\*\s+app\s+without \/v1, behind \/internal\s+required read/,
    )
    t.match(await row(page, 'routes', 'GET /old').innerText(), /redirect 308 to https:\/\/acme\.test\{path\}/)
    t.match(await row(page, 'routes', '/robots.txt').innerText(), /any.*answer 200.*https:\/\/acme\.test/s)
    t.same(await findings(page), [])
  })

  await t.test('the admin port lists them in the order of gateway.yaml', async t => {
    const { total, routes } = (await send(`${gateway.adminUrl}/routes`)).json<RouteList>()
    t.equal(total, 4)
    t.same(
      routes.map(({ path, to }) => [path, to]),
      [
        ['/v1/**', 'app'],
        ['GET /old', 'redirect 308 to https://acme.test{path}'],
        ['/robots.txt', 'answer 200'],
        ['/**', 'app'],
      ],
    )
  })
})
