/** The page while Redis is away: it says which rules refuse and which limit nothing. */
import t from 'tap'
import { launchBrowser } from '../../helpers/browser.js'
import { redisCommand, startRedis } from '../../helpers/redis.js'
import { operated, row, visit } from './operator.js'

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
