/** `sluice keys` without a running gateway: what it needs of the configuration, and which key is meant. */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import type { ApiKey } from '../../gateway/identify/api-keys/key-file.js'
import { changeKeyFile } from '../../tools/keys/file.js'
import { sluice } from '../helpers/command.js'
import { inProject } from '../helpers/root.js'

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
  mkdirSync(join(folder, 'policies'))
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

t.test(
  'a key that cannot be shown is not made, and none is given up for it',
  { skip: !existsSync('/dev/full') },
  async t => {
    const { folder, keys, listed } = start(t)
    await keys('add', '--project', 'acme', '--name', 'ci')
    const full = openSync('/dev/full', 'w')
    t.teardown(() => closeSync(full))
    for (const args of [
      ['rotate', 'ci'],
      ['add', '--project', 'acme', '--name', 'other'],
    ]) {
      const command = [inProject('dist', 'gateway', 'cli.js'), 'keys', ...args, '--config', folder]
      const { status, stderr } = spawnSync(process.execPath, command, { stdio: ['ignore', full, 'pipe'] })
      t.match(
        { status, stderr: String(stderr) },
        { status: 1, stderr: /The output cannot be written \(ENOSPC\)\.\n$/ },
      )
      t.match(listed(), [{ name: 'ci', revoked: undefined }])
    }
  },
)

t.test('a gateway.yaml that cannot be read keeps nobody from revoking a key', async t => {
  const { folder, file, keys, listed } = start(t)
  await keys('add', '--project', 'acme', '--name', 'ci')
  writeFileSync(join(folder, 'gateway.yaml'), 'version: [')
  t.match(await keys('revoke', 'ci'), { code: 1, err: /gateway\.yaml:1:.*name the file with --file/s })
  t.match(await keys('list', '--file', file), { code: 0, out: /ci.*active/s })
  t.match(await keys('revoke', 'ci', '--file', file), { code: 0, out: /is revoked/ })
  t.match(listed(), [{ revoked: String }])
  t.match(await keys('rotate', 'ci', '--file', file), { code: 2, err: /takes no --file/ })
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

t.test('a key may be given whole, or as any beginning from its prefix on', async t => {
  const { keys, listed } = start(t)
  const make = async (name: string) => (await keys('add', '--project', 'acme', '--name', name)).out.trim()
  const states = () => listed().map(({ name, revoked }) => `${name} ${revoked ? 'revoked' : 'active'}`)
  const [whole, part, visible, other] = [await make('a'), await make('b'), await make('c'), await make('d')]
  t.match(await keys('revoke', whole), { code: 0, out: /\(a of acme\) is revoked/ })
  t.match(await keys('revoke', part.slice(0, 20)), { code: 0, out: /\(b of acme\) is revoked/ })
  t.match(await keys('revoke', visible.slice(0, 15)), { code: 0, out: /\(c of acme\) is revoked/ })
  t.match(await keys('rotate', other), { code: 0, err: /\(d of acme\)/ })
  t.same(states(), ['a revoked', 'b revoked', 'c revoked', 'd revoked', 'd active'])

  const next = (await keys('rotate', 'd')).out.trim()
  const wrong = `${next.slice(0, -1)}${next.endsWith('x') ? 'y' : 'x'}`
  for (const action of ['revoke', 'rotate']) {
    for (const given of [wrong, `${next}x`]) {
      t.match(await keys(action, given), { code: 1, err: /That is another key than .* \(d of acme\)/ })
    }
  }
  t.equal(states().at(-1), 'd active')
})

t.test('no message has more of a key than its visible prefix', async t => {
  const { keys } = start(t)
  const key = (await keys('add', '--project', 'acme', '--name', 'ci')).out.trim()
  const gone = `sluice_00000000_${key.slice(16)}`
  for (const args of [
    ['revoke', gone],
    ['rotate', gone],
    ['revoke', ` ${key}`],
    ['revoke', `Api-Key ${key}`],
    ['revoke', key.slice(0, -1).concat('!')],
    ['revoke', 'ci', key],
    ['revoke', 'nobody', '--project', key],
    ['rotate', 'ci', '--expires', key],
    ['add', '--project', key, '--name', 'x'],
    ['add', '--project', 'acme', '--name', 'x', '--scope', `"${key}`],
    [key],
  ]) {
    const { code, out, err } = await keys(...args)
    t.not(code, 0, err)
    t.notMatch(out + err, key.slice(16, 24), args.join(' '))
  }
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

t.test('a key cannot live for more than a hundred years, by any option', async t => {
  const { keys, file, listed } = start(t)
  const ci = ['add', '--project', 'acme', '--name', 'ci', '--expires']
  t.match(await keys(...ci, '999999999d'), {
    code: 2,
    err: /--expires: "999999999d" is too long: at most 36500d/,
  })
  t.match(await keys(...ci, '999999999999d'), { code: 2, err: /is not a length of time/ })
  t.match(await keys(...ci, '36501d'), { code: 2 })
  t.match(await keys(...ci, '36500d'), { code: 0 })
  t.match(await keys('rotate', 'ci', '--overlap', '999999999d'), {
    code: 2,
    err: /--overlap: .* at most 36500d/,
  })
  writeFileSync(
    file,
    readFileSync(file, 'utf8').replace(/"expires": ".*?"/, '"expires": "9999-12-31T00:00:00Z"'),
  )
  t.match(await keys('rotate', 'ci'), { code: 0 })
  t.ok(Date.parse(listed()[1]?.expires ?? '') < Date.now() + 36_501 * 86_400_000)
})

t.test('list --live needs no configuration', async t => {
  const nowhere = await sluice(['keys', 'list', '--live', 'http://127.0.0.1:1', '--config', '/nowhere'])
  t.match(nowhere, { code: 1, err: /Nothing answers on http:\/\/127\.0\.0\.1:1/ })
})

t.test('a command that stood still undoes nothing that another did meanwhile', async t => {
  const { keys, file, listed } = start(t)
  await keys('add', '--project', 'acme', '--name', 'leaked')
  const revoke = (before: readonly ApiKey[]) => before.map(key => ({ ...key, revoked: key.created }))
  const began = performance.now()
  const slow = () =>
    changeKeyFile(file, before => {
      // By a clock that is wrong the lock looks old.
      utimesSync(`${file}.lock`, 0, 0)
      changeKeyFile(file, revoke)
      return before
    })
  t.throws(slow, { message: /stood still, and another one took over: nothing was changed/ })
  t.ok(performance.now() - began > 9000, 'the lock was respected for a while')
  t.match(listed(), [{ name: 'leaked', revoked: String }])
  t.same(readdirSync(dirname(file)).sort(), ['api-keys.json', 'gateway.yaml', 'policies', 'projects.yaml'])
  t.match(await keys('add', '--project', 'acme', '--name', 'next'), { code: 0 })
})

t.test('a link to the file stays a link; its owner and who may read it stay the same', async t => {
  const { keys, file, folder, listed } = start(t)
  const target = join(folder, 'elsewhere', 'keys.json')
  mkdirSync(dirname(target))
  symlinkSync('elsewhere/link', file)
  symlinkSync('keys.json', join(folder, 'elsewhere', 'link'))
  t.match(await keys('add', '--project', 'acme', '--name', 'first'), { code: 0 })
  t.equal(readFileSync(target, 'utf8'), readFileSync(file, 'utf8'), 'made where the link points')
  chmodSync(target, 0o666)
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(target, 1234, 4321)
  t.match(await keys('add', '--project', 'acme', '--name', 'second'), { code: 0 })
  t.ok(lstatSync(file).isSymbolicLink())
  t.equal(listed().length, 2)
  const { mode, uid, gid } = statSync(target)
  t.equal(mode & 0o777, 0o666)
  if (isRoot) t.same([uid, gid], [1234, 4321])
})

t.test('what is no regular file is named, and never waited for', async t => {
  for (const [make, what] of [
    [(file: string) => execFileSync('mkfifo', [file]), 'not a regular file'],
    [(file: string) => mkdirSync(file), 'a folder'],
    [(file: string) => symlinkSync('/dev/zero', file), 'not a regular file'],
  ] as const) {
    const { keys, file, folder } = start(t)
    make(file)
    for (const args of [['list'], ['add', '--project', 'acme', '--name', 'ci'], ['revoke', 'ci']]) {
      t.match(await keys(...args), { code: 1, err: new RegExp(`cannot be used: It is ${what}\\.`) })
    }
    const gateway = join(folder, 'gateway.yaml')
    writeFileSync(gateway, `${readFileSync(gateway, 'utf8')}identify: [api-key]\n`)
    t.match(await sluice(['check', '--config', folder]), { code: 1, err: new RegExp(`It is ${what}\\.`) })
  }
})

t.test('a folder in which nothing can be written is named', async t => {
  const { keys } = start(t, { gateway: GATEWAY.replace('api-keys', 'missing/api-keys') })
  t.match(await keys('add', '--project', 'acme', '--name', 'ci'), {
    code: 1,
    err: /missing\/api-keys\.json cannot be written: it does not exist \(.*missing\/api-keys\.json\.lock/,
  })
})
