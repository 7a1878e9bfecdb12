/** API keys on the operator's page: shown where gateway.yaml names a file for them, with their last use. */
import { join } from 'node:path'
import t from 'tap'
import type { KeyList } from '../../../gateway/admin/key-list.js'
import { newKey } from '../../../gateway/identify/api-keys/key-file.js'
import { changeKeyFile } from '../../../tools/keys/file.js'
import { launchBrowser } from '../../helpers/browser.js'
import { send } from '../../helpers/http.js'
import { waitUntil } from '../../helpers/wait.js'
import { findings, operated, row, visit } from './operator.js'

t.test('API keys on the operator’s page', async t => {
  const browser = await launchBrowser(t)
  if (!browser) return

  await t.test('each has a row, which says whether it still works and when it was last used', async t => {
    const gateway = await operated(t, '', 'apiKeys: api-keys.json\nidentify: [api-key, host]\n')
    const made = (name: string, scopes: string[]) => newKey({ project: 'acme', name, scopes }, new Date())
    const [ci, old] = [made('ci', ['read']), made('old', [])]
    const revoked = { ...old.entry, revoked: old.entry.created }
    changeKeyFile(join(gateway.folder, 'api-keys.json'), () => [ci.entry, revoked])
    await waitUntil('the use of the key', async () => {
      await send(`${gateway.url}/reads`, { headers: { 'x-api-key': ci.key } })
      const { keys } = (await send(`${gateway.adminUrl}/keys`)).json<KeyList>()
      return typeof keys[0]?.last_used === 'string'
    })
    const page = await visit(t, browser, gateway.adminUrl)
    await page.getByRole('region', { name: 'API keys' }).waitFor()
    t.match(
      await row(page, 'keys', 'ci').innerText(),
      /acme\s+ci\s+sluice_\w{8}…\s+active\s+\d\d:\d\d:\d\d\s+never\s+read/,
    )
    t.match(await row(page, 'keys', 'old').innerText(), /revoked\s+not yet/)
    t.notMatch(await page.content(), ci.key)
    t.same(await findings(page), [])
  })

  await t.test('without such a file there is no section', async t => {
    const gateway = await operated(t)
    const page = await visit(t, browser, gateway.adminUrl)
    await page.getByText('Nothing is refused, away or left out.').waitFor()
    t.equal(await page.getByRole('region', { name: 'API keys' }).count(), 0)
    t.equal(await page.getByRole('link', { name: 'Keys' }).count(), 0)
  })
})
