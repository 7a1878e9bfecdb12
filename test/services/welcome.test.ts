/** The welcome page: what it offers exists in the configuration that ships with Sluice. */
import t from 'tap'
import { start } from '../../services/welcome/index.js'
import { sluice } from '../helpers/command.js'
import { send } from '../helpers/http.js'

const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

t.test(
  'a browser gets a page and a terminal gets text, both with addresses under the requested host',
  async t => {
    const service = await start({ env: { ADMIN_HOST: '0.0.0.0', ADMIN_PORT: '9001' } })
    t.teardown(() => service.close())
    const text = await send(service.url, { headers: { host: 'dev.localhost:8080' } })
    t.match(text.headers['content-type'], 'text/plain')
    t.match(text.body, 'http://dev.localhost:8080/self-service/registration')
    t.match(text.body, 'http://127.0.0.1:9001/ui/\n')
    t.notMatch(text.body, '<')

    const page = await send(service.url, {
      headers: { ...HTML, host: 'dev.localhost', 'x-forwarded-proto': 'https' },
    })
    t.match(page.headers, { 'content-type': 'text/html; charset=utf-8', vary: 'accept' })
    t.match(page.headers['content-security-policy'], "default-src 'none'")
    t.match(page.body, '<a href="https://dev.localhost/api/v1/docs">')
    t.notMatch(page.body, '<script')

    t.notMatch((await send(service.url, { headers: { ...HTML, host: '"><b>' } })).body, '<b>')
    t.equal((await send(service.url, { method: 'HEAD' })).body, '')
    const posted = await send(service.url, { method: 'POST' })
    t.match(posted, { status: 405, headers: { allow: 'GET, HEAD' } })
  },
)

t.test('an IPv6 admin host is in brackets in the link', async t => {
  const service = await start({ env: { ADMIN_HOST: '::1', ADMIN_PORT: '9001' } })
  t.teardown(() => service.close())
  t.match((await send(service.url)).body, 'http://[::1]:9001/ui/\n')
})

t.test('the shipped configuration routes / to the welcome page, and its links to the services', async t => {
  const upstreamOf = async (path: string) => {
    const { out } = await sluice(['explain', 'GET', path, '--config', 'config', '--json'])
    return (JSON.parse(out) as { upstream: string }).upstream
  }
  t.equal(await upstreamOf('/'), 'welcome')
  t.equal(await upstreamOf('/self-service/registration'), 'identity')
  t.equal(await upstreamOf('/api/v1/docs'), 'directory')
  t.equal(await upstreamOf('/sessions/whoami'), 'identity')
})
