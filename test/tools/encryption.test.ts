/** `sluice encryption rotate` beside a running gateway. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { sluice } from '../helpers/command.js'
import { gatewayProcess, writeConfig } from '../helpers/gateway-process.js'

const API_KEYS = 'a-management-key-0123'
const gateway = `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { directory: { embedded: directory } }
routes: [{ path: /api/**, upstream: directory }]
`

t.test('a rotation beside a running gateway makes the old key unnecessary', async t => {
  const [old, fresh] = [1, 2].map(() => randomBytes(32).toString('base64')) as [string, string]
  const folder = writeConfig(t, gateway, {})
  const run = (ENCRYPTION_KEY: string) => gatewayProcess(t, folder, { ENCRYPTION_KEY, API_KEYS })
  const authorization = `Api-Key ${API_KEYS}`
  const headers = { authorization, 'content-type': 'application/json' }
  const first = await run(old)
  const answer = await fetch(`${first.url}/api/v1/directory-sync`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ tenant: 'acme', product: 'crm' }),
  })
  const { data } = (await answer.json()) as { data: { id: string; scim: { secret: string } } }
  await first.kill()

  const env = { DATA_DIR: folder, ENCRYPTION_KEY: `${fresh},${old}` }
  const second = await run(env.ENCRYPTION_KEY)
  const rotated = await sluice(['encryption', 'rotate'], { env })
  t.equal(rotated.code, 0, rotated.err)
  t.equal(
    rotated.out,
    '1 directory, 1 of them encrypted again.\nAll secrets are encrypted with the first key: older keys are no longer needed.\n',
  )
  const again = await sluice(['encryption', 'rotate', '--json'], { env })
  t.same(JSON.parse(again.out), { directories: 1, reencrypted: 0, unreadable: [], done: true })
  const scim = (url: string) =>
    fetch(`${url}/api/scim/v2.0/${data.id}/Users`, {
      headers: { authorization: `Bearer ${data.scim.secret}` },
    })
  t.equal((await scim(second.url)).status, 200)
  await second.kill()
  t.equal((await scim((await run(fresh)).url)).status, 200)

  const lost = await sluice(['encryption', 'rotate'], { env: { ...env, ENCRYPTION_KEY: old } })
  t.equal(lost.code, 1)
  t.match(lost.out, `1 directory has a secret that none of the keys can decrypt: ${data.id}. Add the key`)
})

t.test('wrong arguments and a missing database are reported', async t => {
  t.match(await sluice(['encryption', 'turn']), { code: 2, err: /"encryption" knows "rotate", not "turn"/ })
  const DATA_DIR = join(t.testdir(), 'none')
  t.match(await sluice(['encryption', 'rotate'], { env: { DATA_DIR } }), {
    code: 1,
    err: /holds no directory\.db/,
  })
})
