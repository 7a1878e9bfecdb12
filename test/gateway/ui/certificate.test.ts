/** What an operator sees while a certificate is missing: on the page and in `sluice top`. */
import t from 'tap'
import { launchBrowser } from '../../helpers/browser.js'
import { canMakeCertificates } from '../../helpers/certificates.js'
import { sluice } from '../../helpers/command.js'
import { fakeAuthority } from '../../helpers/fake-authority.js'
import { testGateway } from '../../helpers/gateway.js'
import { send } from '../../helpers/http.js'
import { visit } from './operator.js'

if (canMakeCertificates(t)) {
  t.test('why there is no certificate is said wherever somebody looks, and the gateway is ready', async t => {
    const authority = await fakeAuthority(t, () => '')
    const detail = 'shop.test is not welcome'
    authority.lies = {
      'new-order': (_req, res) => res.writeHead(403).end(JSON.stringify({ detail })),
    }
    const folder = t.testdir({ 'authority.pem': authority.ca })
    const acme = `domains: [shop.test], directory: "${authority.directory}", ca: ${folder}/authority.pem, folder: ${folder}`
    const gateway = await testGateway(t, {
      upstream: 'http://127.0.0.1:9',
      limits: `tls: { acme: { ${acme} } }`,
    })
    t.equal((await send(`${gateway.adminUrl}/readyz`)).status, 200)
    const says = /TLS connections are refused.* localhost:\d+ .*: shop\.test is not welcome/
    const browser = await launchBrowser(t)
    if (browser) {
      const page = await visit(t, browser, gateway.adminUrl)
      await page.getByRole('region', { name: 'What needs attention' }).getByText(says).waitFor()
    }
    const state = (await send(`${gateway.adminUrl}/state`)).json<{ certificate: object }>()
    t.match(state.certificate, { domains: ['shop.test'], expires: null, failure: new RegExp(detail) })
    const { out } = await sluice(['top', '--once', '--live', gateway.adminUrl])
    t.match(out, new RegExp(`Certificate missing: .*${detail}`))
    const { body } = await send(`${gateway.adminUrl}/metrics`)
    t.match(body, /^sluice_certificate_orders_total\{result="failed"\} 1$/m)
    t.notMatch(body, /^sluice_certificate_expires_timestamp_seconds\{/m)
    const lines = gateway.lines.filter(({ msg }) => /certificate/.test(String(msg)))
    t.match(lines.at(-1), { level: 'error', reason: new RegExp(detail), msg: /TLS connections are refused/ })
  })
}
