/** The programs that are measured. Each is started anew for every sample, on a core of its own. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { installPython } from '../lib/python.mjs'
import { inProject, onPath } from '../lib/run.mjs'
import { caddyConfig } from './caddy.mjs'
import { haproxyConfig, nginxConfig, nginxLuaConfig, sluiceConfig } from './configs.mjs'
import { envoyConfig } from './envoy.mjs'
import { installBeside } from './install.mjs'
import { BOTH_CORES, freePort, PROXY_CORE, start } from './processes.mjs'
import { traefikConfig } from './traefik.mjs'

const NODE = process.execPath
const MODULES = inProject('.cache', 'bench')
/** Peers that are not dependencies of ours, in the versions the targets were set with. */
const PACKAGES = {
  fastify: '5.12.8',
  '@fastify/http-proxy': '11.6.3',
  '@fastify/rate-limit': '11.2.0',
  ioredis: '6.0.0',
}
const LUA_MODULE = '/usr/lib/nginx/modules/ngx_http_lua_module.so'

const fromPyPI = name => inProject('.cache', 'python', 'bench', 'bin', name)
/** One worker, and nothing shared with another Envoy on the machine. */
const ENVOY_ARGS = ['--concurrency', '1', '--disable-hot-restart', '--log-level', 'critical']

/** Several workers need more than the one core. */
const coresOf = ({ workers }) => (workers === undefined ? PROXY_CORE : BOTH_CORES)

const sluice = settings => ({
  async start({ folder, upstream, redis, ...scenario }) {
    const [port, adminPort] = [await freePort(), await freePort()]
    const config = {
      ...settings,
      port,
      adminPort,
      upstream,
      ...scenario,
      redis: settings.redis ? redis.url : '',
    }
    if (settings.limits === 'none') config.limits = 'none'
    sluiceConfig(folder, config)
    const env = {
      LOG_LEVEL: 'error',
      DATA_DIR: join(folder, 'data'),
      CONFIG: folder,
      PROJECTS: String(scenario.keys ?? 0),
    }
    const program =
      scenario.keys === undefined
        ? [inProject('dist', 'gateway', 'cli.js'), 'serve', '--config', folder]
        : [inProject('scripts', 'bench', 'peers', 'sluice-keys.mjs')]
    return { port, ...(await start(coresOf(scenario), NODE, program, { port, env })) }
  },
})

const peer = (file, { redis: onRedis = false } = {}) => ({
  async start({ upstream, redis, limits }) {
    const port = await freePort()
    const env = {
      UPSTREAM: upstream,
      PORT: String(port),
      MODULES: join(MODULES, 'index.js'),
      MAX: limits === 'tight' ? '1' : '60000000',
      REDIS: onRedis ? redis.url : '',
    }
    return {
      port,
      ...(await start(PROXY_CORE, NODE, [inProject('scripts', 'bench', 'peers', file)], { port, env })),
    }
  },
})

const server = (command, configOf, args) => ({
  async start({ folder, upstreamPort, redis, limits, tls }) {
    const port = await freePort()
    const file = configOf(folder, { port, upstreamPort, redisPort: redis.port, limits, tls })
    return { port, ...(await start(PROXY_CORE, command, args(file), { port })) }
  },
})
const nginxArgs = file => ['-c', file]

/**
 * In table order. `counts`: false without limits; `redis`: true when it calls Redis; `tls`: true when it can terminate
 * TLS.
 */
export const CONTESTANTS = [
  { name: 'http-proxy', label: 'bare http-proxy, keep-alive', counts: false, ...peer('http-proxy.mjs') },
  { name: 'sockets', label: 'Node sockets joined, nothing read', counts: false, ...peer('sockets.mjs') },
  { name: 'none', label: 'Sluice, no rules', counts: false, tls: true, ...sluice({ limits: 'none' }) },
  { name: 'memory', label: 'Sluice, in process', counts: true, tls: true, ...sluice({}) },
  { name: 'strict', label: 'Sluice, Redis strict', counts: true, redis: true, ...sluice({ redis: true }) },
  {
    name: 'leased',
    label: 'Sluice, Redis leased',
    counts: true,
    redis: true,
    ...sluice({ redis: true, lease: true }),
  },
  {
    name: 'fastify',
    label: '@fastify/http-proxy + rate-limit, memory',
    counts: true,
    ...peer('fastify.mjs'),
  },
  {
    name: 'fastify-redis',
    label: '@fastify/http-proxy + rate-limit, Redis',
    counts: true,
    redis: true,
    ...peer('fastify.mjs', { redis: true }),
  },
  {
    name: 'nginx',
    label: 'nginx limit_req, two zones',
    counts: true,
    tls: true,
    ...server('nginx', nginxConfig, nginxArgs),
  },
  {
    name: 'nginx-lua',
    label: 'nginx + Lua + Redis',
    counts: true,
    redis: true,
    isThere: () => existsSync(LUA_MODULE) && existsSync('/usr/share/lua/5.1/nginx/redis.lua'),
    ...server('nginx', nginxLuaConfig, nginxArgs),
  },
  {
    name: 'haproxy',
    label: 'HAProxy, two stick tables',
    counts: true,
    tls: true,
    isThere: () => onPath('haproxy'),
    ...server('haproxy', haproxyConfig, file => ['-f', file]),
  },
  {
    name: 'envoy',
    label: 'Envoy, two local rate limits',
    counts: true,
    isThere: () => onPath('python3'),
    ...server(fromPyPI('envoy'), envoyConfig, file => ['-c', file, ...ENVOY_ARGS]),
  },
  {
    name: 'traefik',
    label: 'Traefik, two rate limits',
    counts: true,
    isThere: () => onPath('python3'),
    ...server(fromPyPI('traefik'), traefikConfig, file => [`--configFile=${file}`]),
  },
  {
    name: 'caddy',
    label: 'Caddy, no limits',
    counts: false,
    isThere: () => onPath('python3'),
    ...server(fromPyPI('caddy'), caddyConfig, file => ['run', '--config', file]),
  },
]

/** Installs the peers that Debian does not package. */
export function installPeers() {
  installBeside(MODULES, PACKAGES)
  if (onPath('python3')) installPython('bench', inProject('scripts', 'bench', 'peers', 'requirements.txt'))
}
