/** `sluice keys` without a running gateway: what it needs of the configuration, and which key is meant. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ApiKey } from '../../gateway/identify/api-keys/key-file.js'
import { sluice } from '../helpers/command.js'

const GATEWAY = `version: 1
upstreams: { app: { url: "http://127.0.0.1:1" } }
routes: [{ path: /**, upstream: app }]
apiKeys: api-keys.json
`
const PROJECTS = `version: 1
projects:
  - { id: acme, plan: growth, environment: production }
  - { id: globex, plan: growth, environment: production }
`

function start(t: Test, { gateway = GATEWAY, projects = PROJECTS } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-keys-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'gateway.yaml'), gateway)
  writeFileSync(join(folder, 'projects.yaml'), projects)
  const file = join(folder, 'api-keys.json')
  const keys = (...args: string[]) => sluice(['keys', ...args, '--config', folder])
  const listed = (): ApiKey[] => JSON.parse(readFileSync(file, 'utf8')).keys
  return { folder, file, keys, listed }
}

t.test('keys can be made and revoked whatever else is wrong with the configuration', async t => {
  const broken = `${GATEWAY}identify: [{ plugin: acme-users, realm: 1 }]
plugins: [./acme-users.mjs]
redis: \${REDIS_URL_THAT_IS_NOT_SET}
policies: missing
`
  const { keys, listed } = start(t, { gateway: broken, projects: `${PROJECTS}plans: wrong\n` })
  t.match(await keys('add', '--project', 'acme', '--name', 'ci'), { code: 0, out: /^sluice_/ })
  t.match(await keys('rotate', 'ci'), { code: 0, out: /^sluice_/ })
  t.match(await keys('revoke', 'ci'), { code: 0, out: /is revoked/ })
  t.match(await keys('list'), { code: 0, out: /ci.*revoked/s })
  t.equal(listed().filter(({ revoked }) => revoked).length, 2)
})

t.test('why the file of keys or the projects cannot be found is said with its place', async t => {
  const lost = start(t, { gateway: GATEWAY.replace('api-keys.json', `\${NOT_SET}`) })
  t.match(await lost.keys('revoke', 'ci'), {
    code: 1,
    err: /gateway\.yaml:4:10 apiKeys: .*NOT_SET is not set/,
  })
  const unnamed = start(t, { gateway: 'version: 1\n' })
  t.match(await unnamed.keys('list'), { code: 1, err: /gateway\.yaml names no file for keys/ })
  const unread = start(t, { gateway: 'a: [' })
  t.match(await unread.keys('list'), { code: 1, err: /gateway\.yaml:1:\d+: / })
  const noProjects = start(t, { gateway: `${GATEWAY}projects: others.yaml\n` })
  t.match(await noProjects.keys('add', '--project', 'acme', '--name', 'ci'), {
    code: 1,
    err: /others\.yaml.*cannot be read/,
  })
})

t.test('--project narrows what is revoked and rotated', async t => {
  const { keys, listed } = start(t)
  for (const project of ['acme', 'globex']) await keys('add', '--project', project, '--name', 'ci')
  const ofProject = (id: string) => listed().filter(({ project }) => project === id)
  t.match(await keys('revoke', 'ci'), { code: 1, err: /2 keys are called "ci": give its --project/ })
  t.match(await keys('rotate', 'ci', '--project', 'acme'), { code: 0, err: /ci of acme/ })
  t.equal(ofProject('acme').length, 2)
  t.match(await keys('revoke', 'ci', '--project', 'globex'), { code: 0, out: /ci of globex/ })
  t.match(await keys('revoke', ofProject('acme')[1]?.id as string, '--project', 'globex'), {
    code: 1,
    err: /No key of globex that works is called/,
  })
  t.equal(ofProject('acme').filter(({ revoked }) => revoked).length, 1, 'the one that was rotated')
})

t.test('an option that an action does not know is refused', async t => {
  const { keys } = start(t)
  for (const [args, option] of [
    [['list', '--expires', '1d'], 'expires'],
    [['revoke', 'ci', '--overlap', '0s'], 'overlap'],
    [['rotate', 'ci', '--scope', 'a'], 'scope'],
    [['add', '--project', 'acme', '--name', 'ci', '--live', 'config'], 'live'],
  ] as const) {
    t.match(await keys(...args), { code: 2, err: `"keys ${args[0]}" takes no --${option}.` })
  }
})

t.test('list --live needs no configuration', async t => {
  const nowhere = await sluice(['keys', 'list', '--live', 'http://127.0.0.1:1', '--config', '/nowhere'])
  t.match(nowhere, { code: 1, err: /Nothing answers on http:\/\/127\.0\.0\.1:1/ })
})
