/** The shipped schema in a real browser, with scripts switched off. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { launchBrowser } from '../../../helpers/browser.js'
import { REGISTRATION, started } from '../started.js'

const SETTINGS = '/self-service/settings'

/** Opens a page as a new person. Scripts are off, because the forms need none. */
async function visited(t: Test, browser: Browser, address: string): Promise<Page> {
  const context: BrowserContext = await browser.newContext({ javaScriptEnabled: false })
  t.teardown(() => context.close())
  context.setDefaultTimeout(5000)
  const page = await context.newPage()
  await page.goto(address)
  return page
}

t.test('the registration form in a browser', async t => {
  const browser = await launchBrowser(t)
  if (!browser) return
  const { service, call } = await started(t)
  const stored = async () => {
    const { identities } = (await call('GET', '/admin/identities')).json()
    return (identities as { traits: object }[]).map(({ traits }) => traits)
  }
  const register = (t: Test) => visited(t, browser, service.url + REGISTRATION)

  await t.test(
    'a filled-in form is stored with the right types, whether or not its checkbox is ticked',
    async t => {
      for (const newsletter of [false, true]) {
        const page = await register(t)
        const email = `ann-${newsletter}@x.example`
        await page.getByLabel('E-mail address').fill(email)
        await page.getByLabel('First name').fill('Ann "<&é')
        await page.getByLabel('Age', { exact: true }).fill('29')
        await page.getByLabel('Height in metres').fill('1.70')
        await page.getByLabel('Birthday').fill('1997-02-28')
        await page.getByLabel('Language').selectOption('fr')
        await page.getByLabel('Interest 1').fill('chess')
        await page.getByLabel('Interest 3').fill('[x')
        await page.getByLabel('Send me the newsletter').setChecked(newsletter)
        await page.getByRole('button', { name: 'Register' }).click()
        await page.getByRole('heading', { name: 'Registered' }).waitFor()
        t.same((await stored()).at(-1), {
          email,
          name: { first: 'Ann "<&é' },
          age: 29,
          height: 1.7,
          birthday: '1997-02-28',
          language: 'fr',
          interests: ['chess', '[x'],
          newsletter,
        })
        await page.getByRole('link', { name: 'Change your details' }).click()
        t.equal(await page.getByLabel('Age', { exact: true }).inputValue(), '29')
        t.equal(await page.getByLabel('Send me the newsletter').isChecked(), newsletter)
        await page.getByLabel('Send me the newsletter').setChecked(!newsletter)
        await page.getByRole('button', { name: 'Save' }).click()
        t.match(await page.getByRole('status').innerText(), /saved/)
        t.match((await stored()).at(-1), { newsletter: !newsletter, interests: ['chess', '[x'] })
      }
    },
  )

  await t.test(
    'the form works with the keyboard alone, and the summary of errors gets the focus',
    async t => {
      const page = await register(t)
      const focused = () =>
        page.evaluate<string>(
          'document.activeElement.id || document.activeElement.type || document.activeElement.className',
        )
      const names: string[] = []
      for (let presses = 0; presses < 40 && names.at(-1) !== 'submit'; presses++) {
        await page.keyboard.press('Tab')
        const name = await focused()
        if (name !== names.at(-1)) names.push(name)
      }
      t.same(names, [
        ...['email', 'name.first', 'name.last', 'age', 'height', 'birthday', 'language'].map(
          name => `traits.${name}`,
        ),
        ...[0, 1, 2].map(row => `traits.interests.${row}`),
        'traits.newsletter',
        'submit',
      ])
      await page.getByLabel('Send me the newsletter').focus()
      await page.keyboard.press('Space')
      await page.getByLabel('E-mail address').focus()
      await page.keyboard.type('ann-true@x.example')
      await page.getByLabel('First name').focus()
      await page.keyboard.type('Ann')
      await page.keyboard.press('Enter')
      const summary = page.getByRole('alert')
      t.match(
        await summary.innerText(),
        /One answer needs your attention\n*E-mail address: This is already in use/,
      )
      t.equal(await focused(), 'summary')
      t.match(await page.title(), /^Error: /)
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      // The press does not wait for the change of address.
      await page.waitForURL(/#traits\.email$/)
      t.match(page.url(), /#traits\.email$/)
      await page.keyboard.press('Tab')
      t.equal(
        await focused(),
        'traits.name.first',
        'the link has moved the focus to the field, so the next field follows',
      )
      const email = page.getByLabel('E-mail address')
      t.equal(await email.getAttribute('aria-invalid'), 'true')
      t.equal(await email.getAttribute('aria-describedby'), 'traits.email-error')
      t.equal(await email.inputValue(), 'ann-true@x.example')
      t.equal(await page.getByLabel('Send me the newsletter').isChecked(), true)
    },
  )

  await t.test('every control has a label, objects and lists are groups, and purposes are named', async t => {
    const page = await register(t)
    const unlabelled = await page.evaluate<string[]>(
      `[...document.querySelectorAll('input:not([type=hidden]), select, textarea')]
        .filter(({ labels }) => labels.length !== 1).map(({ name }) => name)`,
    )
    t.same(unlabelled, [])
    t.equal(await page.getByRole('group', { name: 'Name' }).getByRole('textbox').count(), 2)
    t.equal(await page.getByRole('group', { name: 'Interests' }).getByRole('textbox').count(), 3)
    t.equal(await page.getByRole('combobox', { name: 'Language' }).inputValue(), 'en')
    const purposes = { 'E-mail address': 'email', 'First name': 'given-name', Birthday: 'bday' }
    for (const [label, purpose] of Object.entries(purposes)) {
      t.equal(await page.getByLabel(label).getAttribute('autocomplete'), purpose, label)
    }
    await page.getByLabel('Age', { exact: true }).fill('151')
    t.equal(
      await page.evaluate('document.forms[0].checkValidity()'),
      false,
      'the browser knows the bounds of the number',
    )
  })

  await t.test('a page of another site cannot register or change a person', async t => {
    const page = await register(t)
    await page.getByLabel('E-mail address').fill('victim@x.example')
    await page.getByLabel('First name').fill('V')
    await page.getByRole('button', { name: 'Register' }).click()
    await page.getByRole('heading', { name: 'Registered' }).waitFor()
    const before = await stored()
    for (const path of [REGISTRATION, SETTINGS]) {
      const field = (name: string, value: string) => `<input name="${name}" value="${value}">`
      const evil = `<form method="post" action="${service.url}${path}">${field('traits.email', 'evil@x.example')}${field('traits.name.first', 'E')}<button>Win</button></form>`
      const server = createServer((_request, response) =>
        response.setHeader('content-type', 'text/html').end(evil),
      )
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
      t.teardown(() => server.close())
      for (const host of ['127.0.0.1', 'localhost']) {
        await page.goto(`http://${host}:${(server.address() as AddressInfo).port}/`)
        await page.getByRole('button', { name: 'Win' }).click()
        t.match(await page.getByRole('main').innerText(), /sent from another site/, `${host} ${path}`)
      }
    }
    t.same(await stored(), before)
  })
})

t.test('times are entered with native inputs, and the page is in the language of the browser', async t => {
  const browser = await launchBrowser(t)
  if (!browser) return
  const properties = {
    due: { type: 'string', format: 'date-time', title: 'Due', 'x-timezone': 'Europe/Berlin' },
    opens: { type: 'string', format: 'time', title: 'Opens', 'x-timezone': '+01:00' },
    age: { type: 'integer', title: 'Age', maximum: 9, default: 3 },
  }
  const schema = { type: 'object', properties: { traits: { type: 'object', properties } } }
  const folder = t.testdir({ 'schema.json': JSON.stringify(schema) })
  const { service, call } = await started(t, { IDENTITY_SCHEMA: join(folder, 'schema.json') })
  const context = await browser.newContext({ javaScriptEnabled: false, locale: 'de-DE' })
  t.teardown(() => context.close())
  context.setDefaultTimeout(5000)
  const page = await context.newPage()
  await page.goto(service.url + REGISTRATION)
  t.equal(await page.locator('html').getAttribute('lang'), 'de')
  await page.getByLabel('Due').fill('2026-07-01T14:30')
  await page.getByLabel('Opens').fill('08:00')
  await page.getByText('Zeitzone: Europe/Berlin.').waitFor()
  await page.getByRole('button', { name: 'Registrieren' }).click()
  await page.getByRole('link', { name: 'Angaben ändern' }).click()
  t.equal(await page.getByLabel('Due').inputValue(), '2026-07-01T14:30')
  t.equal(await page.getByLabel('Opens').inputValue(), '08:00')
  await page.getByRole('button', { name: 'Speichern' }).click()
  t.match(await page.getByRole('status').innerText(), 'Ihre Angaben sind gespeichert.')
  const { identities } = (await call('GET', '/admin/identities')).json()
  t.match(identities, [{ traits: { due: '2026-07-01T14:30:00+02:00', opens: '08:00:00+01:00', age: 3 } }])
})
