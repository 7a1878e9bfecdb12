/** `npm run pictures`: takes the screenshots for the operator's page in docs/, of a real gateway under real traffic. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Browser, chromium, type Locator, type Page } from 'playwright-core'
import { chromiumPath } from '../test/helpers/browser.js'
import { scoped } from '../test/helpers/scope.js'
import { Failure, inProject, say, script } from './lib/run.mjs'
import { startShop } from './pictures/gateway.js'
import { startTraffic } from './pictures/traffic.js'

const CALM_MS = 150_000
const STORM_MS = 70_000

await script(() =>
  scoped(async t => {
    const executablePath = chromiumPath()
    if (executablePath === undefined) throw new Failure('Chromium is missing: install it')
    const shop = await startShop(t)
    const traffic = startTraffic(t, shop.url)
    // Containers run this as root, where Chromium's sandbox does not work.
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
    t.teardown(() => browser.close())
    say(`traffic for ${(CALM_MS + STORM_MS) / 1000} s`)
    await sleep(CALM_MS)
    await shop.tighten()
    traffic.storm()
    await sleep(STORM_MS - 10_000)
    await shop.mistype()
    shop.loseUpstream()
    await sleep(10_000)
    await takeAll(browser, `${shop.adminUrl}/ui/`)
  }),
)

async function takeAll(browser: Browser, address: string): Promise<void> {
  const open = async (colorScheme: 'light' | 'dark', width = 1200, height = 800) => {
    const page = await browser.newPage({ colorScheme, viewport: { width, height } })
    await page.goto(address)
    await page.locator('#notices li').first().waitFor()
    await page.locator('#closest-table tbody tr').first().waitFor()
    return page
  }
  const take = async (page: Page, name: string, of: Page | Locator = page) => {
    await of.screenshot({ path: inProject('docs', `page-${name}.png`) })
    say(`docs/page-${name}.png`)
  }
  const light = await open('light')
  await take(light, 'overview')
  await light.getByRole('button', { name: 'imports', exact: true }).click()
  await light.locator('#history-chart svg').waitFor()
  await take(light, 'rule', light.locator('#history'))
  await take(light, 'who', light.locator('#closest'))
  await light.getByRole('button', { name: 'What changed' }).click()
  await light.locator('#changes li').first().waitFor()
  await take(light, 'changed', light.locator('#standing'))
  await light.getByRole('button', { name: 'Report-only now…' }).click()
  await light.getByLabel('Why').fill('Imports of acme-production are refused since the edit of 03:00')
  await light.getByLabel('Who you are').fill('ann')
  await take(light, 'confirm', light.getByRole('dialog'))
  await light.getByRole('button', { name: 'Cancel' }).click()
  await take(await open('dark'), 'overview-dark')
  await take(await open('dark', 500, 900), 'narrow')
}
