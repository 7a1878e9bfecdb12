/** Overrides on the operator's page: each asks for confirmation, says what it will do, and can be undone where possible. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { launchBrowser } from '../../helpers/browser.js'
import { send } from '../../helpers/http.js'
import { findings, operated, row, visit } from './operator.js'

t.test('overrides on the operator’s page', async t => {
  const browser = await launchBrowser(t)
  if (!browser) return
  const gateway = await operated(t)
  const page = await visit(t, browser, gateway.adminUrl)
  const dialog = page.getByRole('dialog')
  const overrides = page.getByRole('region', { name: 'Overrides' })
  const giveWhy = (why: string) => dialog.getByLabel('Why').fill(why)

  await t.test('making a rule report-only stops its refusals, and undoing that brings them back', async t => {
    await gateway.ask('/reads', 5)
    t.same(await gateway.ask('/reads'), [429])
    await row(page, 'rules', 'reads').getByRole('button').click()
    await page.getByRole('button', { name: 'Report-only now…' }).click()
    await dialog
      .getByText(
        /The project-limits rule reads is report-only from now on, for 1 h, until about (\d{4}-\d\d-\d\d )?\d\d:\d\d UTC\. It no longer refuses anything/,
      )
      .waitFor()
    t.same(await findings(page), [])
    await dialog.getByLabel('For how long').selectOption('until it is undone')
    await dialog.getByText(/from now on, until it is undone\./).waitFor()
    await dialog.getByRole('button', { name: 'Report-only now' }).click()
    t.equal(await dialog.count(), 1, 'nothing is done without a reason')
    await giveWhy('<b>imports</b> & "co"')
    await dialog.getByLabel('Who you are').fill('<i>ann</i>')
    await dialog.getByRole('button', { name: 'Report-only now' }).click()
    await page.getByText('reads is report-only now.').waitFor()
    t.same(await gateway.ask('/reads'), [200])
    await row(page, 'rules', 'reads').getByText('report-only (for now)').waitFor()
    await overrides.getByText(/by <i>ann<\/i>/).waitFor()
    await page.getByRole('button', { name: 'Undo report-only…' }).click()
    t.equal(
      await dialog.getByLabel('Who you are').inputValue(),
      '<i>ann</i>',
      'the name given before is remembered',
    )
    await giveWhy('enough')
    await dialog.getByRole('button', { name: 'Undo it now' }).click()
    await page.getByText('It is undone.').waitFor()
    t.same(await gateway.ask('/reads'), [429])
    await page.getByRole('button', { name: 'Report-only now…' }).waitFor()
  })

  await t.test('a counter is reset by the parts of its key', async t => {
    t.same(await gateway.ask('/ip', 2, 'POST'), [200, 429])
    await row(page, 'rules', 'by-ip').getByRole('button').click()
    await page.getByText(/; counts every method but GET, HEAD and OPTIONS; counts by client-ip;/).waitFor()
    await page.getByRole('button', { name: 'Reset a counter…' }).click()
    await giveWhy('a customer called')
    await dialog.getByLabel('Client address').fill('localhost')
    await dialog.getByRole('button', { name: 'Reset it now' }).click()
    await dialog.getByText('"localhost" is not an IP address.').waitFor()
    await dialog.getByLabel('Client address').fill('127.0.0.1')
    await dialog.getByText('What by-ip has counted for client address 127.0.0.1 is forgotten').waitFor()
    await dialog.getByRole('button', { name: 'Reset it now' }).click()
    await page.getByText('The counter of by-ip was reset.').waitFor()
    t.same(await gateway.ask('/ip', 1, 'POST'), [200])

    t.same(await gateway.ask('/reads'), [429])
    await page.getByRole('button', { name: 'Reset reads.sustained of acme…' }).click()
    t.equal(await dialog.getByLabel('Project').inputValue(), 'acme')
    await giveWhy('a customer called')
    await dialog.getByRole('button', { name: 'Reset it now' }).click()
    await page.getByText('The counter of reads was reset.').waitFor()
    t.same(await gateway.ask('/reads'), [200])

    t.same(await gateway.ask('/search', 2), [200, 429])
    await row(page, 'rules', 'search').getByRole('button').click()
    await page.getByText(/counts by client-ip; written in/).waitFor()
    await page.getByRole('button', { name: /^Reset search\.\w+ of acme…$/ }).click()
    await dialog.getByLabel('Client address').fill('127.0.0.1')
    t.equal(await dialog.getByLabel('Project').inputValue(), 'acme', 'whose plan has the bucket')
    await dialog.getByText('What search has counted for client address 127.0.0.1 is forgotten').waitFor()
    await giveWhy('a customer called')
    await dialog.getByRole('button', { name: 'Reset it now' }).click()
    await page.getByText('The counter of search was reset.').waitFor()
    t.same(await gateway.ask('/search'), [200])
  })

  await t.test('a network is denied and admitted again with the keyboard alone', async t => {
    await overrides.getByRole('button', { name: 'Deny a network…' }).focus()
    await page.keyboard.press('Enter')
    await dialog.waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    t.equal(
      await page.evaluate('document.activeElement.textContent'),
      'Deny a network…',
      'the focus returns to the button',
    )
    await page.keyboard.press('Enter')
    await page.keyboard.type('127.0.0.0/8')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.type('attack')
    await dialog
      .getByText(
        /Every request of 127\.0\.0\.0\/8 is refused, from now on, for 1 h, until about (\d{4}-\d\d-\d\d )?\d\d:\d\d UTC\./,
      )
      .waitFor()
    await page.keyboard.press('Enter')
    await page.getByText('Requests of 127.0.0.0/8 are refused now.').waitFor()
    t.same(await gateway.ask('/'), [403])
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText('Refused: 403').waitFor()
    await page.getByText(/access entry deny-127\.0\.0\.0-8: deny, enforce \(attack\)/).waitFor()
    await overrides
      .getByRole('button', { name: /^Undo: / })
      .first()
      .focus()
    await page.keyboard.press('Enter')
    await giveWhy('over')
    await page.keyboard.press('Enter')
    await page.getByText('It is undone.').waitFor()
    t.same(await gateway.ask('/'), [200])
    t.same(await findings(page), [])
  })

  await t.test('a project is given a limit of its own, which is undone where it is shown', async t => {
    t.same(await gateway.ask('/search', 1), [429])
    await row(page, 'projects', 'acme').getByRole('button').click()
    await page.locator('#history-facts').getByRole('button', { name: 'Negotiate a limit…' }).click()
    t.equal(await dialog.getByLabel('Project').inputValue(), 'acme')
    await dialog.getByLabel('Bucket').selectOption('search')
    await dialog.getByLabel('Requests a minute').fill('x')
    await giveWhy('a contract')
    await dialog.getByRole('button', { name: 'Set it now' }).click()
    await dialog.getByText(/^sustained: Must be a whole number/).waitFor()
    await dialog.getByLabel('Requests a minute').fill('50')
    await dialog.getByLabel('Requests a second').fill('40')
    await dialog
      .getByText(
        'acme may send 40 requests a second and 50 requests a minute in search, from now on, for 1 h',
      )
      .waitFor()
    t.same(await findings(page), [])
    await dialog.getByRole('button', { name: 'Set it now' }).click()
    await page.getByText('acme has a limit of its own for search now.').waitFor()
    t.same(await gateway.ask('/search', 2), [200, 200])
    await overrides.getByText(/Negotiated: "search" for project acme, burst 40, sustained 50 until/).waitFor()
    await page.getByRole('button', { name: 'Undo the limit for search…' }).click()
    await giveWhy('over')
    await dialog.getByRole('button', { name: 'Undo it now' }).click()
    await page.getByText('It is undone.').waitFor()
    t.same(await gateway.ask('/search'), [429])
    await page.getByRole('button', { name: 'Undo the limit for search…' }).waitFor({ state: 'detached' })

    await overrides.getByRole('button', { name: 'Negotiate a limit…' }).click()
    await dialog.getByLabel('Project').fill('acmee')
    await dialog.getByLabel('Limit', { exact: true }).selectOption('no limit')
    await dialog.getByText('Requests of acmee in all are not counted, from now on').waitFor()
    await giveWhy('a contract')
    await dialog.getByRole('button', { name: 'Set it now' }).click()
    await dialog.getByText('Unknown project "acmee". Did you mean "acme"?').waitFor()
    await page.keyboard.press('Escape')
    t.same(await findings(page), [])
  })

  await t.test('an exempt project is not limited', async t => {
    await row(page, 'projects', 'acme').getByRole('button').click()
    await page.getByRole('button', { name: 'Exempt…' }).click()
    await giveWhy('a migration')
    await dialog.getByRole('button', { name: 'Exempt it now' }).click()
    await page.getByText('Requests of acme are counted by no rule and never limited now.').waitFor()
    await gateway.ask('/reads', 9)
    t.same(await gateway.ask('/reads'), [200])
  })

  await t.test('a counter whose rule is gone can no longer be reset', async t => {
    t.same(await gateway.ask('/ip', 1, 'POST'), [200])
    const counter = row(page, 'closest', 'by-ip')
    await counter.getByRole('button', { name: 'Reset by-ip of acme…' }).waitFor()
    rmSync(join(gateway.folder, 'policies', 'flood.yaml'))
    await send(`${gateway.adminUrl}/reload`, { method: 'POST' })
    await counter.getByRole('button', { name: /^Reset/ }).waitFor({ state: 'detached' })
    t.equal(await counter.count(), 1)
  })
})
