/** The built command as a process, used as in docs/start.md. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { MongoClient } from 'mongodb'
import t, { type Test } from 'tap'
import { mongoUrl } from './helpers/mongo.js'
import { redisUrl } from './helpers/redis.js'
import { inProject, projectFile, root } from './helpers/root.js'
import { sleep, waitUntil } from './helpers/wait.js'

const run = promisify(execFile)

interface Process {
  readonly child: ChildProcess
  readonly url: string
  readonly adminUrl: string
  /**
   * The key that the first start on a folder prints. It is not written with the log, so it may come after the ready
   * line.
   */
  apiKey(): Promise<string>
  out(): string
  err(): string
}

/** Starts `sluice serve` on free ports with the shipped configuration. */
async function serve(t: Test, folder: string, env: Record<string, string> = {}): Promise<Process> {
  const args = [inProject('dist', 'gateway', 'cli.js'), 'serve', '--config', 'config/gateway.yaml']
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { PATH: process.env.PATH ?? '', PORT: '0', ADMIN_PORT: '0', DATA_DIR: folder, ...env },
  })
  t.teardown(() => child.kill('SIGKILL'))
  let out = ''
  let err = ''
  child.stdout.on('data', text => {
    out += text
  })
  child.stderr.on('data', text => {
    err += text
  })
  const ready = await waitUntil(
    'the ready line',
    () => {
      if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}: ${err}`)
      return /Sluice is ready on (\S+), admin on ([^\s"]+)/.exec(out)
    },
    20_000,
  )
  const apiKey = async () => (await waitUntil('the key', () => /sk_\S+(?=\s)/.exec(err)))[0]
  const [, url, adminUrl] = ready as unknown as [string, string, string]
  return { child, url, adminUrl, apiKey, out: () => out, err: () => err }
}

/** Runs the five calls of docs/start.md, with the address and the key filled in; returns what each printed. */
async function fiveCalls({ url }: Process, apiKey: string): Promise<string[]> {
  const page = projectFile('docs/start.md').split('## Five calls')[1] as string
  const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
    .map(([, block]) => block as string)
    .slice(0, 5)
  const script = blocks
    .join('\necho -----\n')
    .replace('API_KEY=sk_...', `API_KEY=${apiKey}`)
    .replaceAll('http://127.0.0.1:8080', url)
  const { stdout } = await run('bash', ['-c', script], { timeout: 30_000 })
  return stdout.split('-----\n')
}

function check(t: Test, [directory, pushed, listed, registered, limited]: string[]): void {
  t.match(JSON.parse(directory as string), {
    data: {
      tenant: 'acme',
      product: 'crm',
      scim: { endpoint: /\/api\/scim\/v2\.0\// },
      log_webhook_events: false,
    },
    error: null,
  })
  t.match(JSON.parse(pushed as string), {
    userName: 'ann@acme.example',
    active: true,
    meta: { resourceType: 'User' },
  })
  t.match(JSON.parse(listed as string), {
    data: [{ first_name: 'Ann', email: 'ann@acme.example' }],
    error: null,
  })
  const { traits } = JSON.parse(registered as string)
  t.strictSame(traits, { email: 'ann@acme.example', name: { first: 'Ann' }, age: 29, newsletter: true })
  t.match(limited, /^(401 ){10}HTTP\/1\.1 429/)
  t.match(
    limited,
    /RateLimit-Policy: "sessions-whoami\.burst";q=10;w=1, "sessions-whoami\.sustained";q=300;w=60/,
  )
  t.match(limited, /"violated-policies":\["sessions-whoami\.burst"\]/)
}

function folderFor(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-e2e-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

t.test('with Node alone, the five calls of docs/start.md print what the page says', async t => {
  const folder = folderFor(t)
  const first = await serve(t, folder)
  const apiKey = await first.apiKey()
  check(t, await fiveCalls(first, apiKey))
  t.notMatch(first.out(), new RegExp(`${apiKey}|ann@|hush`), 'the log holds no secret and no personal data')

  first.child.kill('SIGTERM')
  t.strictSame(await once(first.child, 'exit'), [0, null], 'SIGTERM ends the process with exit code 0')
  const second = await serve(t, folder)
  const { stdout } = await run('curl', [
    '-s',
    `${second.url}/api/v1/directory-sync/users?tenant=acme&product=crm`,
    '-H',
    `Authorization: Api-Key ${apiKey}`,
  ])
  t.match(
    JSON.parse(stdout),
    { data: [{ email: 'ann@acme.example' }] },
    'the stored user is still there after a restart',
  )
  t.notMatch(second.err(), /sk_/, 'the second start shows no key')
})

t.test(
  'with REDIS_URL and MONGODB_URL the same calls count in Redis and store their data in MongoDB',
  async t => {
    const redisAt = await redisUrl(t)
    const mongoAt = await mongoUrl(t)
    if (redisAt === undefined || mongoAt === undefined) return
    const gateway = await serve(t, folderFor(t), { REDIS_URL: redisAt, MONGODB_URL: mongoAt })
    check(t, await fiveCalls(gateway, await gateway.apiKey()))

    const redis = new Redis(redisAt)
    t.teardown(() => redis.disconnect())
    const keys = await redis.keys('sluice:*')
    t.ok(
      keys.some(key => key.endsWith(':sessions-whoami')),
      keys.join(' '),
    )
    const mongo = await MongoClient.connect(mongoAt)
    t.teardown(() => mongo.close())
    const collections = await mongo.db().listCollections().toArray()
    const stored = await Promise.all(
      collections.map(({ name }) => mongo.db().collection(name).countDocuments()),
    )
    t.ok(stored.filter(count => count > 0).length >= 3, 'directories, users and identities are stored')
  },
)

t.test(
  'of 30 parallel requests of a developer to /sessions/whoami exactly 10 are not 429, on both stores',
  async t => {
    const redisAt = await redisUrl(t)
    const stores: Record<string, string>[] = redisAt === undefined ? [{}] : [{}, { REDIS_URL: redisAt }]
    for (const env of stores) {
      const { url } = await serve(t, folderFor(t), env)
      const target = `${url}/sessions/whoami`
      const each = ['-o', '/dev/null', '-w', '%{http_code}\n', '-H', 'Host: dev.localhost', target]
      const all = Array.from({ length: 30 }, (_, i) => (i === 0 ? each : ['--next', ...each])).flat()
      let stdout = ''
      for (let tries = 0; tries < 5; tries += 1) {
        const start = performance.now()
        ;({ stdout } = await run('curl', ['-s', '--parallel', '--parallel-immediate', ...all]))
        if (performance.now() - start < 900) break
        // On a busy machine the calls took longer than the second that is limited.
        await sleep(1100)
      }
      const codes = stdout.trim().split('\n')
      t.equal(codes.length, 30)
      t.equal(codes.filter(code => code !== '429').length, 10, Object.keys(env)[0] ?? 'in process')
    }
  },
)

t.test(
  'sluice check exits with 0 for good files and with 1 for faults; an unknown command exits with 2',
  async t => {
    const sluice = (...args: string[]) =>
      run(process.execPath, [inProject('dist', 'gateway', 'cli.js'), ...args], { cwd: root }).then(
        ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
        (error: { code: number; stdout: string; stderr: string }) => error,
      )
    t.match(await sluice('check', '--config', 'config'), { code: 0, stdout: /gateway\.yaml: good\./ })
    t.match(await sluice('check', '--config', join('test', 'fixtures', 'bad', 'no-such-folder')), {
      code: 1,
      stderr: /cannot be read: it does not exist/,
    })
    t.match(await sluice('chekc'), { code: 2, stderr: /no command "chekc". Did you mean check/ })
    t.match(await sluice('--help'), { code: 0, stdout: /check +\S/ })
    t.match(await sluice('--version'), { code: 0, stdout: /^\d+\.\d+\.\d+\n$/ })
  },
)

t.test('a gateway with the shipped configuration', async t => {
  const folder = folderFor(t)
  const { url, adminUrl, apiKey } = await serve(t, folder)

  t.test("a body too large for a service gets the service's own 413 response", async t => {
    const key = await apiKey()
    for (const path of ['/api/v1/directory-sync', '/self-service/registration', '/admin/identities']) {
      for (const size of [1_100_000, 5_000_000]) {
        const file = join(folder, 'large')
        writeFileSync(file, 'a'.repeat(size))
        const json = 'Content-Type: application/json'
        const fields = ['Host: acme.localhost', `Authorization: Api-Key ${key}`, json, 'Expect:']
        const args = ['-s', '-w', '\n%{http_code}', ...fields.flatMap(field => ['-H', field])]
        const { stdout } = await run('curl', [...args, '--data-binary', `@${file}`, url + path])
        t.match(stdout, /\n413$/, `${path} ${size}`)
        t.notMatch(stdout, /upstream/)
      }
    }
  })

  t.test('sluice health asks the admin port, which also serves metrics', async t => {
    const args = [inProject('dist', 'gateway', 'cli.js'), 'health', '--config', 'config']
    const health = (port: string) => run(process.execPath, args, { cwd: root, env: { ADMIN_PORT: port } })
    t.match(await health(new URL(adminUrl).port), { stdout: 'ready\n' })
    await t.rejects(health('1'), { code: 1, stderr: /Nothing answers/ })
    const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
    t.match(
      metrics,
      /^directory_events_waiting 0$/m,
      'the metrics of the embedded services are served there too',
    )
  })
})
