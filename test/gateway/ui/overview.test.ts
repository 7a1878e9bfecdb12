/** What the operator's page shows of real traffic, in every colour scheme and size, by mouse and keyboard. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { launchBrowser } from '../../helpers/browser.js'
import { send } from '../../helpers/http.js'
import { findings, operated, row, visit } from './operator.js'

t.test('the operator’s page', async t => {
  const browser = await launchBrowser(t)
  if (!browser) return
  const gateway = await operated(t)
  const page = await visit(t, browser, gateway.adminUrl)
  const attention = page.getByRole('region', { name: 'What needs attention' })

  await t.test('a quiet gateway is shown as quiet', async t => {
    await page.getByText('Nothing is refused, away or left out.').waitFor()
    await page.getByText(/^Live, \d\d:\d\d:\d\d UTC$/).waitFor()
    t.same(await findings(page), [])
  })

  await t.test(
    'the page shows who is refused by which rule, with rates, counts and the full counter',
    async t => {
      t.same(await gateway.ask('/reads', 7), [200, 200, 200, 200, 200, 429, 429])
      await gateway.ask('/watched', 3, 'POST')
      await attention
        .getByText(/^reads refuses [\d.]+ requests? a second\. At its limit now: acme\.$/)
        .waitFor()
      await attention.getByText(/^Report-only would refuse: .*watched/).waitFor()
      t.match(await row(page, 'rules', 'reads').innerText(), /enforce/)
      t.match(await row(page, 'rules', 'reads.trial').innerText(), /trial/)
      t.match(await row(page, 'rules', 'watched').innerText(), /report-only/)
      t.match(await row(page, 'projects', 'acme').innerText(), /growth|acme/)
      const fullest = page.locator('#closest-table tbody tr').filter({ hasText: /reads\.(burst|sustained)/ })
      t.match(await fullest.first().innerText(), /100 %.*acme.*5\/5 in 1/s)
      await page.getByText(/up .*, event loop .* late, .* MiB/).waitFor()
      t.match(
        await page.locator('#upstreams-table tbody').innerText(),
        /app\s+http:\/\/127\.0\.0\.1:\d+\s+ok/,
      )
      t.equal((await page.locator('#now-refused').innerText().then(Number)) > 0, true)
    },
  )

  await t.test('slots are shown with the age of the oldest', async t => {
    const held = gateway.ask('/slow', 1, 'POST').catch(() => [])
    t.teardown(() => held)
    await row(page, 'slots', 'slow').waitFor()
    t.match(await row(page, 'slots', 'slow').innerText(), /slow\s+1\s+[\d.]+ m?s/)
    t.equal(await page.locator('#now-slots').innerText(), '1')
  })

  await t.test('rules can be filtered by words and sorted by column', async t => {
    const names = () => page.locator('#rules-table tbody th').allInnerTexts()
    await page.getByLabel('Filter').fill('volumetric REPORT')
    t.same(await names(), ['watched'])
    await page.getByLabel('Filter').fill('nothing like it')
    await page.getByText('There is no rule like this.').waitFor()
    await page.getByLabel('Filter').fill('')
    const head = page.locator('#rules-table').getByRole('columnheader', { name: 'Rule' })
    await head.getByRole('button').click()
    t.equal(await head.getAttribute('aria-sort'), 'ascending')
    t.same(
      await names(),
      (await names()).toSorted((a, b) => a.localeCompare(b)),
    )
    await head.getByRole('button').click()
    t.equal(await head.getAttribute('aria-sort'), 'descending')
    t.same((await names())[0], 'watched')
  })

  await t.test('a rule’s last hour is shown with its kind, key and place', async t => {
    await row(page, 'rules', 'reads').locator('svg.spark').waitFor()
    await row(page, 'rules', 'reads').getByRole('button').click()
    const hour = page.getByRole('region', { name: 'Rule reads' })
    await hour
      .getByText(/^A project-limits rule, enforce; counts by project; written in .*limits\.yaml:3$/)
      .waitFor()
    t.equal(await page.evaluate('document.activeElement.id'), 'history-title', 'the focus moves there')
    await row(page, 'projects', 'acme').getByRole('button').click()
    await page.getByRole('region', { name: 'Project acme' }).getByText('growth, production').waitFor()
    await page.getByRole('button', { name: 'Back to all requests' }).click()
    await page.getByRole('heading', { name: 'All requests' }).waitFor()
  })

  await t.test('explain gives its answer in words', async t => {
    const ask = page.getByRole('region', { name: 'What would become of a request?' })
    await ask.getByLabel('Path or address').fill('/reads')
    await ask.getByLabel('Project (optional)').fill('acme')
    await ask.getByRole('button', { name: 'Explain' }).click()
    await ask.getByText('Refused: 429').waitFor()
    t.match(
      await ask.innerText(),
      /by reads\..*project acme \(growth, production.*reads\.sustained: 5 of 5 in 1 min/s,
    )
    await ask.getByLabel('Path or address').fill('/ip')
    await ask.getByRole('button', { name: 'Explain' }).click()
    await ask.getByText('It passes').waitFor()
    await ask.getByText('by-ip: GET, HEAD and OPTIONS are exempt without reads: true').waitFor()
    await ask.getByLabel('Project (optional)').fill('nobody')
    await ask.getByRole('button', { name: 'Explain' }).click()
    await ask.getByText('There is no project "nobody" in this configuration.').waitFor()
  })

  await t.test('a proxy that trustedProxies lacks is named', async () => {
    await send(gateway.url, { headers: { host: 'acme.localhost', 'x-forwarded-for': '198.51.100.7' } })
    await attention
      .getByText(
        /^Requests from 127\.0\.0\.0\/24 name their clients in x-forwarded-for, which is not believed/,
      )
      .waitFor()
  })

  await t.test('a refused reload shows its problems, and a good one what it changed', async t => {
    const file = join(gateway.folder, 'policies', 'limits.yaml')
    writeFileSync(file, 'version: 1\nkind: project-limits\nbuckets: 5\n')
    const reload = () => send(`${gateway.adminUrl}/reload`, { method: 'POST' })
    await reload()
    await attention
      .getByText(/^The reload at .* was refused, \d+ problems?: revision \w+ stays in force\.$/)
      .waitFor()
    await page
      .getByText(/limits\.yaml:3:\d+/)
      .first()
      .waitFor()
    writeFileSync(
      file,
      'version: 1\nkind: project-limits\nbuckets: { all: ["*"] }\nlimits: [{ for: [{}], quotas: { all: { burst: 7, sustained: 70 } } }]\n',
    )
    await reload()
    await attention.getByText(/was refused/).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'What changed' }).click()
    await page
      .locator('#changes')
      .getByText(/burst 100 → 7|100 .*→ 7/)
      .first()
      .waitFor()
    t.equal(await page.evaluate('document.activeElement.id'), 'changes')
  })

  await t.test('axe finds no fault and nothing is cut off, light or dark, wide or narrow', async t => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const other = await visit(t, browser, gateway.adminUrl, {
        colorScheme,
        viewport: { width: 500, height: 800 },
      })
      await other.locator('#rules-table tbody tr').first().waitFor()
      await other.locator('#history-chart svg').waitFor()
      t.same(await findings(other), [], colorScheme)
      t.ok(await other.evaluate('document.documentElement.scrollWidth <= innerWidth'), colorScheme)
    }
    t.same(await findings(page), [])
  })

  await t.test('Tab reaches the sections in reading order, and the skip link works', async t => {
    const skip = page.getByRole('link', { name: 'Skip to the overview' })
    await skip.focus()
    const passed = ['skip']
    for (let presses = 0; presses < 200; presses++) {
      await page.keyboard.press('Tab')
      const at = await page.evaluate<string | null>(
        `(() => { const one = document.activeElement; return one === document.body ? null : one.closest('section')?.id || one.className || one.tagName })()`,
      )
      if (at === null) break
      if (at !== passed.at(-1)) passed.push(at)
    }
    t.same(passed.slice(0, 2), ['skip', 'A'])
    // The change has already been shown, so the policy section has no control left to focus.
    const sections = ['rules', 'closest', 'projects', 'upstreams', 'slots', 'overrides-section', 'ask']
    t.same(
      passed.filter(name => sections.includes(name)),
      sections,
    )
    await skip.focus()
    await page.keyboard.press('Enter')
    // The press does not wait for the change of address.
    await page.waitForURL(/#main$/)
    t.match(page.url(), /#main$/)
  })
})
