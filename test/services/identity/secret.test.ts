/** Where the service takes its settings and secrets from, and with which it refuses to start. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { serviceSecrets } from '../../../services/identity/secret.js'
import { started } from './started.js'

const keys = [1, 2].map(n => Buffer.alloc(32, n).toString('base64'))

t.test('several keys are read in order, from a variable or a file', async t => {
  t.same(serviceSecrets({ ENCRYPTION_KEY: keys.join(',') }).map(String), keys)
  const folder = t.testdir({
    keys: `${keys.join('\n')}\n`,
    admin: 'another-key-of-many\na-key-of-many-characters\n',
  })
  const service = await started(t, {
    ENCRYPTION_KEY_FILE: join(folder, 'keys'),
    IDENTITY_ADMIN_KEYS_FILE: join(folder, 'admin'),
  })
  const ask = async (authorization: string) =>
    (await service.call('GET', '/admin/identities', { authorization })).status
  t.equal(await ask('Bearer a-key-of-many-characters'), 200)
  t.equal(await ask('Bearer a-key-of-other-characters'), 401)
})

t.test('the key in the data folder is created once', t => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-identity-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const [made] = serviceSecrets({ DATA_DIR: folder })
  t.same(serviceSecrets({ DATA_DIR: folder }), [made])
  t.equal(readFileSync(join(folder, 'identity.key'), 'utf8'), `${made}\n`)
  writeFileSync(join(folder, 'identity.key'), '')
  t.throws(() => serviceSecrets({ DATA_DIR: folder }), { message: /identity\.key is damaged/ })
  t.end()
})

t.test('an empty, invalid or duplicate setting stops the start with a message that names it', async t => {
  const folder = t.testdir({ empty: '\n', bytes: 'a\0b', fine: 'first-key-of-many' })
  const file = (name: string) => join(folder, name)
  const table: [NodeJS.ProcessEnv, RegExp][] = [
    [{ ENCRYPTION_KEY: 'secret' }, /ENCRYPTION_KEY must be 32 bytes in base64/],
    [{ IDENTITY_ADMIN_KEYS_FILE: file('empty') }, /named by IDENTITY_ADMIN_KEYS_FILE is empty/],
    [{ IDENTITY_ADMIN_KEYS_FILE: file('bytes') }, /IDENTITY_ADMIN_KEYS_FILE is not a text file/],
    [{ IDENTITY_ADMIN_KEYS_FILE: file('none') }, /IDENTITY_ADMIN_KEYS_FILE cannot be read \(ENOENT\)/],
    [
      { IDENTITY_ADMIN_KEYS: 'another-key-of-many', IDENTITY_ADMIN_KEYS_FILE: file('fine') },
      /Both IDENTITY_ADMIN_KEYS and IDENTITY_ADMIN_KEYS_FILE are set/,
    ],
  ]
  for (const [env, message] of table) {
    await t.rejects(started(t, env), { message }, JSON.stringify(env))
  }
})
