/**
 * The gateway under soak, whose every reload changes its configuration, and its Redis.
 */
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { get as getSecurely } from 'node:https'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Redis } from 'ioredis'
import {
  gatewayYaml,
  isError,
  oneUpstream,
  projectsYaml,
  serveProcess,
  writeConfig,
} from '../../test/helpers/gateway-process.js'
import { type RedisServer, startRedis } from '../../test/helpers/redis.js'
import type { Scope } from '../../test/helpers/scope.js'
import { waitUntil } from '../../test/helpers/wait.js'
import { Failure, inProject } from '../lib/run.mjs'
import { HOST } from './clients.js'
import type { Held } from './probe.js'

/** Enough even on a slow and busy machine. */
const PATIENCE_MS = 60_000

const POLICIES = {
  'project-limits.yaml': `version: 1
kind: project-limits
buckets: { catch-all: ["*"] }
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas: { catch-all: { burst: 100000, sustained: 6000000 } }
`,
  'in-flight.yaml': `version: 1
kind: in-flight
rules: [{ id: work, match: [POST /work], key: [project], max: 4, mode: enforce, slotTtl: 5s }]
`,
  'volumetric.yaml': `version: 1
kind: volumetric
rules: [{ id: flood, match: [POST /flood], key: [client-ip], quota: { requests: 20, per: 10s }, mode: enforce }]
`,
}

/** What the gateway holds. */
export interface Report {
  readonly processes: readonly { readonly name: string; readonly held: Held }[]
  /** Slots in flight. */
  readonly slots: number
  /** In Redis. */
  readonly keys: number
}

export interface SoakedRedis extends RedisServer {
  /** The number of keys. */
  keys(): Promise<number>
}

export async function startSoakedRedis(t: Scope): Promise<SoakedRedis> {
  const server = await startRedis()
  const client = new Redis(server.port, { maxRetriesPerRequest: null, retryStrategy: () => 100 })
  client.on('error', () => undefined)
  t.teardown(async () => {
    client.disconnect()
    await server.stop()
  })
  return { ...server, keys: () => client.dbsize() }
}

export type SoakedGateway = Awaited<ReturnType<typeof startGateway>>

export interface SoakSettings {
  readonly upstream: string
  readonly redis: SoakedRedis
  /** What `listen` has besides host and port. */
  readonly listen: object
}

export async function startGateway(t: Scope, settings: SoakSettings) {
  const folder = writeConfig(t, configuration(settings, 1), POLICIES, projectsYaml(['soak']))
  const faults: string[] = []
  const probe = pathToFileURL(inProject('dist', 'scripts', 'soak', 'probe.js')).href
  const gateway = await serveProcess(
    t,
    ['--config', folder],
    { DATA_DIR: folder },
    {
      node: ['--expose-gc', '--disable-warning=ExperimentalWarning', '--import', probe],
      onLine(line) {
        if (!line.startsWith('{') || isError(line)) faults.push(line)
      },
    },
  )
  const { url, adminUrl, pid } = gateway
  const processes = async () => {
    const { workers = [] } = JSON.parse((await read(`${adminUrl}/state`)).body) as {
      workers?: { pid: number }[]
    }
    const named = workers.map(({ pid }, i) => ({ name: `worker ${i + 1}`, pid }))
    return [{ name: workers.length > 0 ? 'supervisor' : 'process', pid }, ...named]
  }
  const all = await processes()
  let version = 1
  return {
    ...gateway,
    /** What it logged as an error. */
    faults,
    /** The status of a request to the project. */
    ask: async (path: string) => (await read(url + path, { host: HOST })).status,
    reload() {
      version += 1
      writeFileSync(join(folder, 'gateway.yaml'), gatewayYaml(configuration(settings, version)))
      gateway.signal('SIGHUP')
    },
    async report(): Promise<Report> {
      if (!gateway.isRunning()) throw new Failure(`the gateway is gone: ${gateway.out().slice(-2000)}`)
      const held = await Promise.all(
        all.map(async ({ name, pid }) => ({ name, held: await heldBy(folder, pid) })),
      )
      const { body } = await read(`${adminUrl}/metrics`)
      if (JSON.stringify(await processes()) !== JSON.stringify(all)) throw new Failure('a worker has ended')
      const slots = [...body.matchAll(/^sluice_inflight\{.*\} (\d+)$/gm)]
      return {
        processes: held,
        slots: slots.reduce((sum, [, count]) => sum + Number(count), 0),
        keys: await settings.redis.keys(),
      }
    },
  }
}

/** What probe.ts reports about its process. */
async function heldBy(folder: string, pid: number): Promise<Held> {
  const file = join(folder, `held-by-${pid}.json`)
  rmSync(file, { force: true })
  process.kill(pid, 'SIGUSR2')
  await waitUntil(`a report of process ${pid}`, () => existsSync(file), PATIENCE_MS)
  return JSON.parse(readFileSync(file, 'utf8'))
}

/** On a connection of its own, which does not stay open to be counted. */
async function read(url: string, headers = {}): Promise<{ status: number; body: string }> {
  const ask = url.startsWith('https:') ? getSecurely : get
  const tls = { rejectUnauthorized: false }
  const sent = ask(url, { agent: false, timeout: PATIENCE_MS, headers, ...tls })
  const [answer] = await once(sent, 'response')
  return { status: answer.statusCode, body: (await answer.toArray()).join('') }
}

/**
 * Every version closes the upstream's connections and opens new ones. No version repeats, so that what each leaves
 * behind adds up.
 */
function configuration({ upstream, redis, listen }: SoakSettings, version: number) {
  return {
    listen: { headTimeout: '3s', ...listen },
    redis: redis.url,
    ...oneUpstream(upstream, { timeouts: { connect: '5s', head: '5s', idle: `${2000 + version}ms` } }),
    drain: '2s',
    log: { decisions: 0.001 },
  }
}
