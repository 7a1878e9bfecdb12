/** Set-up links: what the API returns, and the page behind them, fetched and in a real browser. */
import type { BrowserContextOptions, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { openSqlite } from '../../../../services/directory/store/sqlite/store.js'
import { launchBrowser } from '../../../helpers/browser.js'
import { type Directory, type Service, startService, writeUsers } from '../harness.js'

/** Creates a link of the directory; returns its id, and its path with the query. */
async function linkOf(
  service: Service,
  { id }: Directory,
  body?: object,
): Promise<{ id: string; path: string }> {
  const made = await service.manage('POST', `/${id}/setup-links`, body)
  const { pathname, search } = new URL(made.body.data.url)
  return { id: made.body.data.id, path: pathname + search }
}

/** Fetches the response as text. */
async function ask(service: Service, path: string, method = 'GET') {
  const answer = await fetch(new URL(path, service.url), { method })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

const at = (path: string, page: string) => path.replace('/page?', `/${page}?`)

t.test('a link is listed without its token, shows only its own directory, and can be deleted', async t => {
  const service = await startService(t)
  const [one, other] = [await service.directory({ name: 'Acme <at> "Okta"' }), await service.directory()]
  const list = async () => (await service.manage('GET', `/${one.id}/setup-links`)).body.data
  const made = await service.manage('POST', `/${one.id}/setup-links`)
  t.match(made, {
    status: 201,
    body: { data: { id: /^lnk_/, url: /\/api\/scim\/setup\/page\?link=[\w-]{43}$/, token_shown_at: null } },
  })
  const { url, ...listed } = made.body.data
  t.same(await list(), [listed])
  const days = (Date.parse(listed.expires_at) - Date.parse(listed.created_at)) / 86_400_000
  t.equal(days, 7)
  const second = await linkOf(service, one, { lifetime_seconds: 60 })
  const page = await ask(service, second.path)
  t.equal(page.status, 200)
  t.match(page.text, 'Connect Acme &lt;at&gt; &quot;Okta&quot;')
  t.match(page.text, `/api/scim/v2.0/${one.id}"`)
  t.notMatch(page.text, other.id)
  t.notMatch(page.text, one.secret, 'the page does not show the secret by itself')

  t.match(await service.manage('DELETE', `/${other.id}/setup-links/${second.id}`), { status: 404 })
  t.match(await service.manage('DELETE', `/${one.id}/setup-links/${second.id}`), { status: 200 })
  t.equal((await ask(service, second.path)).status, 403)
  t.equal((await list()).length, 1)
  await service.manage('DELETE', `/${one.id}/setup-links`)
  t.same(await list(), [])
  for (const page of ['page', 'status']) t.equal((await ask(service, at(second.path, page))).status, 403)
  for (const page of ['token', 'new-token']) {
    t.equal((await ask(service, at(second.path, page), 'POST')).status, 403)
  }
  t.equal((await ask(service, '/api/scim/setup/page')).status, 403)
  t.equal((await ask(service, '/api/scim/setup/elsewhere')).status, 404)
  t.equal((await ask(service, second.path, 'POST')).status, 405)
  t.match(await service.manage('POST', '/unknown/setup-links'), { status: 404 })
  t.match(await service.manage('GET', '/unknown/setup-links'), { status: 404 })
  const body = { lifetime_seconds: 59 }
  t.match(await service.manage('POST', `/${one.id}/setup-links`, body), { status: 400 })
  const pulled = await service.directory({ type: 'external' })
  t.match(await service.manage('POST', `/${pulled.id}/setup-links`), {
    status: 400,
    body: { error: { message: /consent-link/ } },
  })
  t.equal(typeof url, 'string')
})

t.test('a link expires, ends with its directory, and a directory has at most 20', async t => {
  const service = await startService(t)
  const directory = await service.directory()
  const { path } = await linkOf(service, directory)
  for (let more = 1; more < 20; more++) await linkOf(service, directory)
  t.match(await service.manage('POST', `/${directory.id}/setup-links`), { status: 409 })
  const later = t.intercept(Date, 'now', {
    value: () => 8 * 86_400_000 + Date.parse(new Date().toISOString()),
  })
  t.equal((await ask(service, path)).status, 403)
  later.restore()
  t.equal((await ask(service, path)).status, 200)
  await service.manage('DELETE', `/${directory.id}`)
  t.equal((await ask(service, path)).status, 403)
})

t.test('the token is shown once, and a new one can be created while the old one stays valid', async t => {
  const service = await startService(t)
  const directory = await service.directory()
  const { path } = await linkOf(service, directory)
  t.notMatch((await ask(service, at(path, 'new-token'), 'POST')).text, /value="[\w-]{43}"/)
  const shows = await Promise.all([1, 2, 3].map(() => ask(service, at(path, 'token'), 'POST')))
  const withSecret = shows.filter(({ text }) => text.includes(`value="${directory.secret}"`))
  t.equal(withSecret.length, 1)
  const again = await ask(service, path)
  t.match(again.text, /The token was shown on \d{4}-\d\d-\d\d/)
  t.notMatch(again.text, directory.secret)
  const fresh = await ask(service, at(path, 'new-token'), 'POST')
  const secret = /id="secret" value="([\w-]{43})"/.exec(fresh.text)?.[1] ?? ''
  t.not(secret, directory.secret)
  for (const good of [secret, directory.secret]) {
    t.match(await directory.scim('GET', '/Users', undefined, { authorization: `Bearer ${good}` }), {
      status: 200,
    })
  }
  t.notMatch(service.logged.join('\n'), secret)
})

t.test(
  'a link creates two new tokens at most, and all links together leave some for the operator',
  async t => {
    const service = await startService(t)
    const directory = await service.directory()
    const links = []
    for (let n = 0; n < 3; n++) links.push((await linkOf(service, directory)).path)
    const renew = (path: string) => ask(service, at(path, 'new-token'), 'POST')
    for (const path of links) await ask(service, at(path, 'token'), 'POST')
    const [first = '', second = '', third = ''] = links
    for (const path of [first, first, second, second]) t.match((await renew(path)).text, /id="secret"/)
    for (const page of [await renew(third), await renew(third)]) {
      t.match(page, { status: 409, text: /ask the person who sent you this link/ })
      t.notMatch(page.text, /id="secret"|overlap_seconds/)
    }
    const spent = await ask(service, first)
    t.match(spent, { status: 200, text: /This link cannot create more tokens/ })
    t.notMatch(spent.text, /Create a new token/)
    t.match(await service.manage('POST', `/${directory.id}/scim-secret`, {}), { status: 200 })
    await service.manage('POST', `/${directory.id}/scim-secret`, { overlap_seconds: 0 })
    const late = await renew(second)
    t.match(late.text, /This link cannot create more tokens/)
    t.notMatch(late.text, /id="secret"/)
    t.match((await renew(third)).text, /id="secret"/, 'a refused attempt does not count')
    const told = service.logged.filter(line => line.startsWith('a set-up link made a new SCIM secret'))
    t.equal(told.length, 5)
    t.match(told[0], directory.id)
  },
)

t.test('the page says when the directory is deactivated', async t => {
  const service = await startService(t)
  const directory = await service.directory()
  const { path } = await linkOf(service, directory)
  t.notMatch((await ask(service, path)).text, /switched off/)
  await service.manage('PATCH', `/${directory.id}`, { deactivated: true })
  t.match((await ask(service, path)).text, /switched off: Okta will be refused/)
})

t.test('the page loads nothing, is not cached or framed, and sends no referrer', async t => {
  const service = await startService(t)
  const directory = await service.directory()
  const { path } = await linkOf(service, directory)
  const { headers, text } = await ask(service, path)
  const policy = headers.get('content-security-policy') ?? ''
  t.match(policy, /^default-src 'none'; style-src 'sha256-[^ ]+'; script-src 'sha256-[^ ]+'; /)
  for (const rule of ["form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"])
    t.match(policy, rule)
  t.notMatch(policy, /unsafe|https?:/)
  t.equal(headers.get('referrer-policy'), 'no-referrer')
  t.equal(headers.get('cache-control'), 'no-store')
  t.notMatch(text, /<(?:script|img|iframe|object)[^>]*src=/)
  t.notMatch(text, / on[a-z]+=/)
  await service.close()
  const store = openSqlite(`${service.dataDir}/directory.db`)
  t.teardown(() => store.close())
  const [link] = await store.setupLinks(directory.id, 0)
  t.notOk(path.includes(String(link?.hash)), 'the token of the link is stored as a hash')
})

t.test('the set-up page in a browser', async t => {
  const browser = await launchBrowser(t)
  if (!browser) return
  const service = await startService(t)
  const visit = async (t: Test, path: string, options: BrowserContextOptions = {}): Promise<Page> => {
    const context = await browser.newContext(options)
    t.teardown(() => context.close())
    context.setDefaultTimeout(10_000)
    const page = await context.newPage()
    page.on('console', message => {
      if (message.type() === 'error') t.fail(message.text())
    })
    await page.goto(service.url + path)
    return page
  }

  await t.test('an admin copies the address and the token, and sees the first user arrive', async t => {
    const directory = await service.directory({ type: 'azure-scim-v2', name: 'Acme' })
    const { path } = await linkOf(service, directory)
    const permissions = ['clipboard-read', 'clipboard-write']
    const page = await visit(t, path, { permissions })
    await page.getByRole('heading', { name: 'Steps in Microsoft Entra ID' }).waitFor()
    const copied = () => page.evaluate('navigator.clipboard.readText()')
    await page.getByRole('button', { name: 'Copy the Base URL' }).click()
    await page.getByText('Base URL copied').waitFor()
    t.equal(await copied(), `${service.url}/api/scim/v2.0/${directory.id}`)
    await page.getByRole('button', { name: 'Show the token' }).click()
    await page.getByRole('button', { name: 'Copy the Token' }).click()
    await page.getByText('Token copied').waitFor()
    t.equal(await copied(), directory.secret)
    const mark = page.getByText('Waiting for the first user.')
    await mark.waitFor()
    await writeUsers(directory, ['ada'])
    await page.getByText('The first user arrived. The connection works.').waitFor()
    await page.reload()
    await page.getByText('The first user arrived.').waitFor()
  })

  await t.test('the keyboard opens the steps of each provider', async t => {
    const { path } = await linkOf(service, await service.directory())
    const page = await visit(t, path)
    t.equal(await page.getByRole('link', { name: 'Okta' }).getAttribute('aria-current'), 'page')
    for (const name of ['Microsoft Entra ID', 'OneLogin', 'JumpCloud', 'Another provider', 'Okta']) {
      const link = page.getByRole('navigation').getByRole('link', { name })
      await link.focus()
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: `Steps in ${name}` }).waitFor()
      t.ok((await page.getByRole('listitem').count()) >= 5 + 4, name)
    }
    await page.keyboard.press('Tab')
    t.equal(await page.evaluate('document.activeElement.textContent'), 'Okta')
  })

  await t.test('without scripts the page works except for copying and automatic updates', async t => {
    const directory = await service.directory()
    const { path } = await linkOf(service, directory)
    const page = await visit(t, path, { javaScriptEnabled: false })
    t.equal(await page.getByRole('button', { name: /^Copy/ }).count(), 0)
    await page.getByRole('button', { name: 'Show the token' }).click()
    t.equal(await page.getByRole('textbox', { name: 'Token' }).inputValue(), directory.secret)
    await page.goto(service.url + path)
    await page.getByRole('button', { name: 'Create a new token' }).click()
    t.not(await page.getByRole('textbox', { name: 'Token' }).inputValue(), directory.secret)
    await writeUsers(directory, ['ada'])
    await page.getByRole('link', { name: 'Look again' }).click()
    await page.getByText('The first user arrived.').waitFor()
  })
})
