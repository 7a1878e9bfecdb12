/**
 * The Compose file: accepted by Compose's own loader, without unneeded privileges, and consistent with what it mounts.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { runTool } from '../helpers/deploy-tools.js'
import { inProject, projectFile } from '../helpers/root.js'

interface Service {
  readonly image?: string
  readonly build?: string
  readonly environment: Record<string, string>
  readonly depends_on?: Record<string, { condition: string }>
  readonly healthcheck?: object
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly secrets?: readonly string[]
  readonly stop_grace_period?: string
  readonly cap_drop?: readonly string[]
  readonly read_only?: boolean
  readonly extra_hosts?: readonly string[]
}

const folder = inProject('deploy', 'compose')
const compose = parse(projectFile('deploy', 'compose', 'compose.yaml')) as {
  services: Record<'gateway' | 'prometheus' | 'grafana', Service> & Record<string, Service>
  secrets: Record<string, { file: string }>
  volumes: Record<string, unknown>
}
const { gateway, prometheus } = compose.services

t.test("Compose's own loader accepts the file", async t => {
  runTool(t, 'compose-go', ['compose.yaml'], { cwd: folder })
})

t.test('the gateway waits for healthy dependencies, and runs read-only and without capabilities', async t => {
  for (const [name, { condition }] of Object.entries(gateway.depends_on ?? {})) {
    t.equal(condition, 'service_healthy')
    t.ok(compose.services[name]?.healthcheck, `${name} has a health check`)
  }
  t.equal(new URL(gateway.environment.REDIS_URL ?? '').hostname, 'redis')
  t.equal(new URL(gateway.environment.MONGODB_URL ?? '').hostname, 'mongo')
  t.same(gateway.cap_drop, ['ALL'])
  t.equal(gateway.read_only, true)
})

t.test('images are pinned by digest, ports are bound to loopback, and every mounted file exists', async t => {
  for (const [name, { image, build, ports = [], volumes = [], secrets = [] }] of Object.entries(
    compose.services,
  )) {
    if (build === undefined) t.match(image, /:[\w.-]+@sha256:[0-9a-f]{64}$/, name)
    else t.ok(existsSync(resolve(folder, build, 'Dockerfile')))
    for (const port of ports) t.match(port, /^127\.0\.0\.1:/, name)
    for (const secret of secrets) t.ok(secret in compose.secrets, secret)
    for (const [source = ''] of volumes.map(mount => mount.split(':'))) {
      t.ok(source.startsWith('.') ? existsSync(resolve(folder, source)) : source in compose.volumes, source)
    }
  }
})

t.test('Prometheus scrapes the admin port with the key that the gateway is given', async t => {
  const [scrape] = parse(projectFile('deploy', 'compose', 'prometheus.yml')).scrape_configs
  t.equal(gateway.environment.ADMIN_HOST, '0.0.0.0')
  t.equal(gateway.environment.ADMIN_KEY_FILE, scrape.authorization.credentials_file)
  t.ok(gateway.secrets?.includes('admin_key') && prometheus.secrets?.includes('admin_key'))
  t.equal(scrape.job_name, 'sluice')
  t.same(scrape.static_configs, [{ targets: ['gateway:8081'] }])
})

t.test('make-secrets.sh creates keys that the gateway accepts, and keeps existing ones', async t => {
  const copy = mkdtempSync(join(tmpdir(), 'sluice-compose-'))
  t.teardown(() => rmSync(copy, { recursive: true }))
  cpSync(join(folder, 'make-secrets.sh'), join(copy, 'make-secrets.sh'))
  const make = () => spawnSync(join(copy, 'make-secrets.sh')).status
  const read = () => Object.values(compose.secrets).map(({ file }) => readFileSync(join(copy, file), 'utf8'))
  t.equal(make(), 0)
  const made = read()
  t.equal(make(), 0)
  t.same(read(), made)
  t.equal(statSync(join(copy, 'secrets')).mode & 0o777, 0o700)

  const env = {
    PATH: process.env.PATH ?? '',
    ADMIN_HOST: '0.0.0.0',
    ADMIN_KEY_FILE: join(copy, 'secrets', 'admin_key'),
  }
  const args = [inProject('dist', 'gateway', 'cli.js'), 'check', '--config', inProject('config')]
  const { status, stderr, stdout } = spawnSync(process.execPath, args, { env, encoding: 'utf8' })
  t.equal(status, 0, stdout + stderr)
  t.equal(Buffer.from(made[1] ?? '', 'base64').length, 32)
})

t.test(
  'with services.yaml, services of their own are reached by the gateway that knows their secret',
  async t => {
    runTool(t, 'compose-go', ['compose.yaml', 'services.yaml'], { cwd: folder })
    const apart = parse(projectFile('deploy', 'compose', 'services.yaml')) as typeof compose
    for (const name of ['directory', 'identity']) {
      const service = apart.services[name]
      t.same(service?.ports, undefined, `${name} has no published port`)
      t.ok(
        service?.secrets?.includes('gateway_secret') &&
          apart.services.gateway.secrets?.includes('gateway_secret'),
      )
      t.same([service?.cap_drop, service?.read_only], [['ALL'], true])
    }
    const config = mkdtempSync(join(tmpdir(), 'sluice-services-'))
    t.teardown(() => rmSync(config, { recursive: true }))
    cpSync(inProject('config'), config, { recursive: true })
    cpSync(join(folder, 'services-gateway.yaml'), join(config, 'gateway.yaml'))
    const args = [inProject('dist', 'gateway', 'cli.js'), 'check', '--config', config]
    const env = { PATH: process.env.PATH ?? '', GATEWAY_SECRET: 'a-secret-of-the-gateway' }
    const { status, stderr, stdout } = spawnSync(process.execPath, args, { env, encoding: 'utf8' })
    t.equal(status, 0, stdout + stderr)
  },
)

t.test('the gateway can reach an upstream on the host by name', async t => {
  t.same(gateway.extra_hosts, ['host.docker.internal:host-gateway'])
})
