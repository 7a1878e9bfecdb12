/** The page and its port: the key, a lost connection, a hidden tab, several workers, hostile names. */
import t from 'tap'
import type { LiveSnapshot } from '../../../gateway/admin/live-snapshot.js'
import { launchBrowser } from '../../helpers/browser.js'
import { gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { send, startApp } from '../../helpers/http.js'
import { redisCommand, redisUrl, startRedis } from '../../helpers/redis.js'
import { sleep } from '../../helpers/wait.js'
import { findings, operated, visit } from './operator.js'

t.jobs = 2

const KEY = 'canary-0123456789abcdef'

t.test('the page’s files need no key, load nothing from elsewhere, and allow no frame', async t => {
  const { adminUrl } = await operated(t, KEY)
  for (const [path, type] of [
    ['/ui/', /^text\/html/],
    ['/ui/main.js', /^text\/javascript/],
    ['/ui/style.css', /^text\/css/],
    ['/ui/icon.svg', /^image\/svg/],
  ] as const) {
    const { status, headers } = await send(adminUrl + path)
    t.equal(status, 200, path)
    t.match(headers, {
      'content-type': type,
      'content-security-policy':
        /default-src 'none'.*frame-ancestors 'none'.*require-trusted-types-for 'script'/,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    })
    t.notMatch(headers['content-security-policy'], /unsafe|https?:/)
  }
  t.match(await send(`${adminUrl}/ui`), { status: 302, headers: { location: '/ui/' } })
  for (const path of ['/ui/nothing.js', '/ui/../server.js', '/ui/%2e%2e/admin/server.js', '/ui/main.ts']) {
    t.match((await send(adminUrl + path)).status, /40[14]/, path)
  }
  t.match((await send(adminUrl, { headers: { authorization: `Bearer ${KEY}` } })).json(), { ui: '/ui/' })
})

t.test('the page asks for the key, reports a wrong one, and keeps the right one in its tab only', async t => {
  const browser = await launchBrowser(t)
  if (!browser) return
  const { adminUrl } = await operated(t, KEY)
  const page = await visit(t, browser, adminUrl)
  const key = page.getByLabel('Key', { exact: true })
  await key.waitFor()
  t.equal(await page.evaluate('document.activeElement.id'), 'key')
  t.same(await findings(page), [])
  await page.keyboard.type('wrong-key-0123456789')
  await page.keyboard.press('Enter')
  await page.getByText('This is not the key for this port.').waitFor()
  t.same(await findings(page), [])
  await key.fill('ключ-0123456789abcdef')
  await page.keyboard.press('Enter')
  t.equal(
    await page.getByText('Connection lost.').isVisible(),
    false,
    'a key that cannot be sent shows no lost connection',
  )
  await key.fill(KEY)
  await page.keyboard.press('Enter')
  await page.getByText('Nothing is refused, away or left out.').waitFor()
  t.equal(await key.isVisible(), false)
  await page.reload()
  await page.getByText('Nothing is refused, away or left out.').waitFor()
  t.equal(
    await page
      .evaluate('JSON.stringify(localStorage) + document.cookie')
      .then(kept => String(kept).includes(KEY)),
    false,
  )
  const other = await page.context().newPage()
  await other.goto(`${adminUrl}/ui/`)
  await other.getByLabel('Key', { exact: true }).waitFor()
})

t.test('with two workers and a key, a lost connection is shown until it is back', async t => {
  const browser = await launchBrowser(t)
  if (!browser) return
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const upstream = await startApp(t, (_request, response) => response.end('done'))
  const folder = writeConfig(
    t,
    `version: 1
listen: { host: 127.0.0.1, port: 0, workers: 2 }
admin: { host: 127.0.0.1, port: 0, key: ${KEY} }
redis: ${redis}
upstreams: { app: { url: "${upstream}" } }
routes: [{ path: /**, upstream: app }]
`,
    {},
  )
  const gateway = await gatewayProcess(t, folder)
  const page = await visit(t, browser, gateway.adminUrl)
  await page.getByLabel('Key', { exact: true }).fill(KEY)
  await page.getByRole('button', { name: 'Open' }).click()
  await page
    .getByText(/answers worker \d+, up/)
    .nth(1)
    .waitFor()
  for (let n = 0; n < 20; n++) await send(gateway.url, { headers: { host: 'acme.localhost' } })
  await page.locator('#projects-table').getByText('acme', { exact: true }).waitFor()

  gateway.signal('SIGSTOP')
  const banner = page.getByRole('complementary', { name: 'Connection' })
  await banner
    .getByText(
      /^Connection lost\. .* This is the state of \d\d:\d\d:\d\d UTC, \d+ m?s old\. (Next try in|Trying again)/,
    )
    .waitFor()
  t.equal(await page.evaluate(`getComputedStyle(document.querySelector('main')).filter`), 'grayscale(1)')
  t.same(await findings(page), [])
  await banner.getByRole('button', { name: 'Try now' }).click()
  await banner.getByText(/Trying again now\.$/).waitFor()
  gateway.signal('SIGCONT')
  await banner.waitFor({ state: 'hidden' })
  await page.getByText(/^Live, /).waitFor()
})

t.test('a Redis that is away is shown with its address and time, until it is back', async t => {
  const browser = await launchBrowser(t)
  if (!browser || redisCommand(t) === undefined) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const { adminUrl } = await operated(t, '', `redis: "${redis.url}"\nstore: { deadline: 200ms }`)
  const page = await visit(t, browser, adminUrl)
  await page.getByText('Redis ok').waitFor()
  await redis.kill()
  await page
    .locator('#notices')
    .getByText(/127\.0\.0\.1:\d+.* has been away since \d\d:\d\d:\d\d \(.* ago\)\. Each rule follows/)
    .waitFor()
  t.match(await page.locator('#store').innerText(), /Redis away/)
  t.match(await page.locator('#announced').innerText(), /has been away since/, 'the notice is read out')
  await redis.restart()
  await page.getByText('Redis ok').waitFor()
})

t.test('a question that fails again and again has one answer: the last', async t => {
  const browser = await launchBrowser(t)
  if (!browser) return
  const { adminUrl } = await operated(t)
  const page = await visit(t, browser, adminUrl)
  let times = 0
  await page.route('**/changes', route => {
    times += 1
    return route.fulfill({ status: 503, json: { detail: `Failed for the time ${times}.` } })
  })
  for (const time of [1, 2, 3]) {
    await page.getByRole('button', { name: 'What changed' }).click()
    await page.getByText(`Failed for the time ${time}.`).waitFor()
  }
  t.equal(await page.locator('#changes .fault').count(), 1)
})

t.test('a hidden tab closes its stream', async t => {
  const browser = await launchBrowser(t)
  if (!browser) return
  const { adminUrl } = await operated(t)
  const page = await visit(t, browser, adminUrl)
  await page.getByText(/^Live, /).waitFor()
  const see = (isHidden: boolean) =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))`)
  const ended = page.waitForEvent('requestfailed', request => request.url().endsWith('/live/events'))
  await see(true)
  await ended
  await page.getByText('Not live').waitFor()
  const asked: string[] = []
  page.on('request', request => asked.push(request.url()))
  // Several times the pause after which a lost stream is opened again.
  await sleep(2000)
  t.same(asked, [])
  await see(false)
  await page.getByText(/^Live, /).waitFor()
})

t.test('markup in any name is shown as text', async t => {
  const browser = await launchBrowser(t)
  if (!browser) return
  const { adminUrl, ask } = await operated(t)
  await ask('/reads', 6)
  const snapshot = (await send(`${adminUrl}/live`)).json<LiveSnapshot & Record<string, unknown>>()
  const evil = `"'><img src=x onerror=alert(1)><script>alert(1)</script>`
  const poisoned = JSON.parse(JSON.stringify(snapshot), (name, value) =>
    typeof value === 'string' && !/^(at|since|loaded_at|started_at|kind|state|result)$/.test(name)
      ? value + evil
      : value,
  )
  const { rules, projects } = poisoned
  poisoned.reload = {
    at: snapshot.at,
    result: 'refused',
    problems: [{ file: evil, line: 1, column: 1, path: evil, sentence: evil }],
  }
  poisoned.overrides = [
    {
      id: evil,
      kind: 'mode',
      what: evil,
      at: snapshot.at,
      by: evil,
      from: evil,
      why: evil,
      until: null,
      undo: true,
      undo_call: `DELETE /rules/${evil}/mode`,
    },
  ]
  poisoned.closest = [
    {
      rule: rules[0].id,
      policy: evil,
      project: evil,
      key: evil,
      used: 9,
      quota: 9,
      window_ms: 1000,
      reset_ms: 5,
      mode: 'enforce',
      at: snapshot.at,
    },
  ]
  poisoned.slots = [{ rule: evil, held: 1, oldest_ms: 5 }]
  const page = await browser.newPage()
  page.on('dialog', () => t.fail('a script from a name ran'))
  await page.route('**/live/events', route =>
    route.fulfill({
      contentType: 'text/event-stream',
      body: `event: live\ndata: ${JSON.stringify(poisoned)}\n\n`,
    }),
  )
  await page.route('**/changes', route =>
    route.fulfill({
      json: {
        from: evil,
        to: evil,
        at: snapshot.at,
        changes: [{ heading: evil, change: 'added', sentence: evil }],
      },
    }),
  )
  await page.goto(`${adminUrl}/ui/`)
  await page.getByRole('button', { name: projects[0].id }).first().click()
  await page.getByRole('button', { name: rules[0].id }).first().click()
  await page.getByRole('button', { name: 'What changed' }).click()
  await page.locator('#changes li').waitFor()
  await page.getByRole('button', { name: /^Undo: / }).click()
  await page.getByRole('dialog').getByText(evil).waitFor()
  t.equal(await page.locator('img, main script, [onerror], [style]').count(), 0)
  t.ok((await page.getByText(evil).count()) > 10)
  await page.close()
})
