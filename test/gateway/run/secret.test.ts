/** Where the secret of counter keys comes from, and what is left on the disk for it. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { hashSecret } from '../../../gateway/run/secret.js'
import { gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'

const gateway = (upstream: string) => `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { app: ${upstream} }
routes: [{ path: /**, upstream: app }]
`

t.test('a gateway without embedded services makes no data folder; one with them does', async t => {
  for (const [upstream, makes] of [
    ['{ url: "http://127.0.0.1:9" }', false],
    ['{ embedded: identity }', true],
  ] as const) {
    const folder = writeConfig(t, gateway(upstream), {})
    await gatewayProcess(t, folder, { DATA_DIR: '' }, folder)
    t.equal(existsSync(join(folder, 'data')), makes, upstream)
  }
  const named = writeConfig(t, gateway('{ url: "http://127.0.0.1:9" }'), {})
  await gatewayProcess(t, named, { DATA_DIR: 'kept' }, named)
  t.ok(existsSync(join(named, 'kept', 'gateway.key')), 'but where DATA_DIR names one')
})

t.test('the secret is ENCRYPTION_KEY’s, else what the data folder keeps, else one of its own', async t => {
  const folder = t.testdir()
  const kept = { DATA_DIR: join(folder, 'kept') }
  t.same(hashSecret(kept, false), hashSecret(kept, true))
  t.same(hashSecret({ ENCRYPTION_KEY: 'k' }, false), hashSecret({ ENCRYPTION_KEY: 'k', ...kept }, true))

  const before = process.cwd()
  process.chdir(folder)
  t.teardown(() => process.chdir(before))
  t.notSame(hashSecret({}, false), hashSecret({}, false))
  t.notOk(existsSync('data'))
  mkdirSync('data')
  writeFileSync(join('data', 'gateway.key'), Buffer.alloc(32, 7).toString('base64'))
  t.same(hashSecret({}, false), Buffer.alloc(32, 7), 'what an earlier version has kept goes on to count')
})
