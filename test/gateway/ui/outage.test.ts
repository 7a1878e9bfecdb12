/** The page while Redis is away: it says which rules refuse and which limit nothing. */
import t from 'tap'
import { launchBrowser } from '../../helpers/browser.js'
import { testGateway } from '../../helpers/gateway.js'
import { send } from '../../helpers/http.js'
import { rawUpstream } from '../../helpers/raw.js'
import { redisCommand, startRedis } from '../../helpers/redis.js'
import { findings, operated, row, visit } from './operator.js'

t.test('while Redis is away, only a rule that refuses is said to refuse', async t => {
  const browser = await launchBrowser(t)
  if (!browser || redisCommand(t) === undefined) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const start = async (onError: string) => {
    const settings = `redis: "${redis.url}"\nstore: { deadline: 200ms, onError: ${onError} }`
    const gateway = await operated(t, '', settings)
    const page = await visit(t, browser, gateway.adminUrl)
    await page.getByText('Redis ok').waitFor()
    return { gateway, page, notices: page.locator('#notices') }
  }
  const open = await start('open')
  const closed = await start('closed')
  await redis.kill()
  for (const { page } of [open, closed]) await page.locator('#store').getByText('Redis away').waitFor()

  t.same(await open.gateway.ask('/reads', 3), [200, 200, 200])
  const told = await open.notices.getByText(/reads/).first().innerText()
  t.match(told, /^Not counted, so not limited: reads \([\d.]+ a second\)/)
  // Rule, mode, refused a second.
  t.equal(await row(open.page, 'rules', 'reads').locator('td').nth(1).innerText(), '0')

  t.same(await closed.gateway.ask('/reads', 3), [503, 503, 503])
  await closed.notices.getByText(/^reads refuses [\d.]+ requests a second\./).waitFor()
})

t.test('an upstream that cannot be reached is named, with the cause and since when', async t => {
  const browser = await launchBrowser(t)
  if (!browser) return
  const dead = await rawUpstream()
  await dead.stop()
  const gateway = await testGateway(t, { upstream: dead.url })
  const page = await visit(t, browser, gateway.adminUrl)
  await page.getByText('Nothing is refused, away or left out.').waitFor()
  t.equal((await send(gateway.url)).status, 502)
  const notices = page.locator('#notices')
  await notices.getByText(/^app has been unreachable since [\d:]+ \(.* ago\): connect ECONNREFUSED/).waitFor()
  await notices.getByText(/^Upstreams fail [\d.]+ requests a second/).waitFor()
  t.equal(await page.locator('#now-ours').innerText(), '0')
  t.match(
    await page.locator('#upstreams-table tbody').innerText(),
    /app\s+http:\S+\s+unreachable\s+connect ECONNREFUSED \S+, since [\d:]+/,
  )
  t.same(await findings(page), [])
})
