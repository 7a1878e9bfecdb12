/** Writes the contestants' configuration files to a folder of the benchmark. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Http2Wire } from '../../config/words/words.js'
import { makeCertificate } from '../../test/helpers/certificates.js'
import { oneUpstream, writeConfig } from '../../test/helpers/gateway-process.js'
import { type Scope, temporaryFolder } from '../../test/helpers/scope.js'
import type { Callers } from './callers.js'
import type { Settings } from './contestants.js'

export interface PeerSettings extends Pick<Settings, 'limits' | 'tls'> {
  readonly port: number
  readonly upstreamPort: number
  readonly redisPort: number
}

export interface SluiceSettings extends Omit<Settings, 'callers'> {
  readonly port: number
  /** A free one by default. */
  readonly adminPort?: number
  readonly upstreamPort: number
  /** Its URL, or ''. */
  readonly redis?: string
  readonly lease?: boolean
  readonly http2?: Http2Wire
  /** In place of the one project. */
  readonly callers?: Callers | undefined
  readonly routes?: Routing
}

/** How requests are routed: among a thousand other hosts with ten routes each, or with header fields edited. */
export type Routing = 'hosts' | 'edits'

/** Limits that are never reached: measures the cost of counting, not of refusing. */
const ROOMY = { burst: 1_000_000, sustained: 60_000_000 }
/** Limits that are used up at once, so that every later request is refused. */
const TIGHT = { burst: 1, sustained: 1 }

const BENCH = { id: 'bench', plan: 'growth', environment: 'production', hosts: ['bench.test'] }

/** Writes the gateway's files; returns their folder. */
export function sluiceConfig(
  t: Scope,
  settings: SluiceSettings,
  policies: Record<string, string> = {},
): string {
  const { port, adminPort = 0, upstreamPort, redis = '', limits, lease = false, buckets = 0 } = settings
  const { tls = false, http2, workers = 1, callers } = settings
  const files = tls ? certificate(temporaryFolder(t, 'bench')) : undefined
  const quotas = limitsFile(limits === 'tight' ? TIGHT : ROOMY, lease, buckets)
  return writeConfig(
    t,
    {
      // As it is by default.
      listen: {
        port,
        workers,
        maxEventLoopDelay: '500ms',
        ...(http2 && { http2 }),
        ...(files && { tls: { cert: files.cert, key: files.key } }),
      },
      admin: { port: adminPort },
      redis,
      store: { deadline: '1s' },
      ...oneUpstream(`http://127.0.0.1:${upstreamPort}`, settings.http2Upstream ? { protocol: 'h2c' } : {}),
      ...(settings.routes && { routes: ROUTES[settings.routes]() }),
      log: { decisions: 'refused' },
      ...callers?.settings,
    },
    { ...(limits === 'none' ? {} : { 'limits.yaml': quotas }), ...policies },
    callers?.projects ?? { projects: [BENCH] },
  )
}

const ROUTES: Readonly<Record<Routing, () => unknown[]>> = {
  hosts: () => [
    ...Array.from({ length: 1000 }, (_, host) =>
      Array.from({ length: 10 }, (_, i) => ({ host: `h${host}.test`, path: `/r${i}/**`, upstream: 'app' })),
    ).flat(),
    { host: 'bench.test', path: '/**', upstream: 'app' },
  ],
  edits: () => {
    const request = { set: { 'x-plan': `\${project.plan}`, 'x-from': 'edge' }, remove: ['x-debug'] }
    const response = { set: { 'strict-transport-security': 'max-age=31536000' }, remove: ['server'] }
    return [{ path: '/**', upstream: 'app', headers: { request, response } }]
  },
}

function limitsFile({ burst, sustained }: typeof ROOMY, lease: boolean, more: number): string {
  const quota = `{ burst: ${burst}, sustained: ${sustained}${lease ? ', lease: true' : ''} }`
  const names = Array.from({ length: more }, (_, i) => `b${i}`)
  return `version: 1
kind: project-limits
buckets:
  catch-all: ["*"]
${names.map(name => `  ${name}: [/${name}/items, "/${name}/items/{id}"]\n`).join('')}limits:
  - for: [{}]
    quotas:
      catch-all: ${quota}
${names.map(name => `      ${name}: ${quota}\n`).join('')}`
}

const nginxHead = (
  folder: string,
  name: string,
) => `worker_processes 1; pid ${folder}/${name}.pid; error_log /dev/null crit; daemon off;
events { worker_connections 4096; }
`

export interface UpstreamPorts {
  readonly http1: number
  readonly http2?: number
}

/**
 * The upstream behind the proxies: nginx with 300 bytes of JSON, and 100 kB at `/big`. The second port speaks HTTP/2 in
 * the clear; `/bench.Bench/Get` answers there as a gRPC method does, with its status in a trailer.
 */
export function upstreamConfig(folder: string, ports: UpstreamPorts): string {
  const body = JSON.stringify({ ok: true, pad: 'x'.repeat(280) })
  written(folder, 'big', 'x'.repeat(100_000))
  // Workers of nginx are another user.
  chmodSync(folder, 0o755)
  return written(
    folder,
    'upstream.conf',
    `${nginxHead(folder, 'upstream')}http { access_log off; keepalive_requests 100000000;
  server { listen 127.0.0.1:${ports.http1} backlog=4096; location / { default_type application/json; return 200 '${body}'; }
    location = /big { root ${folder}; default_type application/octet-stream; sendfile on; tcp_nopush on; } }
${ports.http2 === undefined ? '' : http2Server(ports.http2, body)} }
`,
  )
}

const http2Server = (
  port: number,
  body: string,
) => `server { listen 127.0.0.1:${port} http2 backlog=4096; http2_max_requests 100000000;
    location / { default_type application/json; return 200 '${body}'; }
    location = /bench.Bench/Get { default_type application/grpc; add_trailer grpc-status 0; return 200 '${body}'; } }`

/** nginx with two limit_req zones. Refusals are not logged, which favours nginx. */
export function nginxConfig(folder: string, settings: PeerSettings): string {
  const { port, upstreamPort, limits, tls = false } = settings
  const files = tls ? certificate(folder) : undefined
  const secured = files
    ? `ssl http2; ssl_certificate ${files.cert}; ssl_certificate_key ${files.key}`
    : 'backlog=4096'
  const [burst, sustained] = limits === 'tight' ? ['1r/s', '1r/m'] : ['100000r/s', '6000000r/m']
  const extra = limits === 'tight' ? '' : ' burst=100000 nodelay'
  return written(
    folder,
    'nginx.conf',
    `${nginxHead(folder, 'nginx')}http { access_log off; keepalive_requests 100000000;
  limit_req_zone $host zone=second:64m rate=${burst}; limit_req_zone $host zone=minute:64m rate=${sustained};
  limit_req_status 429; limit_req_log_level info;
  upstream app { server 127.0.0.1:${upstreamPort}; keepalive 256; keepalive_requests 100000000; }
  server { listen 127.0.0.1:${port} ${secured};
    location / { limit_req zone=second${extra}; limit_req zone=minute${extra};
      proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; } } }
`,
  )
}

/** nginx that runs one Redis script per request, as gateways built on OpenResty do. */
export function nginxLuaConfig(folder: string, settings: PeerSettings): string {
  const { port, upstreamPort, redisPort, limits } = settings
  const [burst, sustained] = limits === 'tight' ? [1, 1] : [1_000_000, 60_000_000]
  return written(
    folder,
    'nginx-lua.conf',
    `load_module modules/ndk_http_module.so; load_module modules/ngx_http_lua_module.so;
${nginxHead(folder, 'nginx-lua')}http { access_log off; keepalive_requests 100000000;
  lua_package_path "/usr/share/lua/5.1/?.lua;;";
  upstream app { server 127.0.0.1:${upstreamPort}; keepalive 256; keepalive_requests 100000000; }
  server { listen 127.0.0.1:${port} backlog=4096;
    location / {
      access_by_lua_block {
        local script = [[local a = redis.call('INCR', KEYS[1]) if a == 1 then redis.call('PEXPIRE', KEYS[1], 1000) end
          local b = redis.call('INCR', KEYS[2]) if b == 1 then redis.call('PEXPIRE', KEYS[2], 60000) end
          return { a, b, redis.call('PTTL', KEYS[2]) }]]
        local client = require('nginx.redis'):new()
        client:set_timeout(1000)
        local connected, failure = client:connect('127.0.0.1', ${redisPort})
        if not connected then ngx.log(ngx.ERR, failure) return ngx.exit(503) end
        sha = sha or client:script('LOAD', script)
        local counts = client:evalsha(sha, 2, '{' .. ngx.var.host .. '}s', '{' .. ngx.var.host .. '}m')
        client:set_keepalive(60000, 256)
        ngx.header['RateLimit-Remaining'] = ${sustained} - counts[2]
        if counts[1] > ${burst} or counts[2] > ${sustained} then ngx.header['Retry-After'] = 1 return ngx.exit(429) end
      }
      proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; } } }
`,
  )
}

/** HAProxy with two stick tables. */
export function haproxyConfig(folder: string, settings: PeerSettings): string {
  const { port, upstreamPort, limits, tls = false } = settings
  const secured = tls ? ` ssl crt ${certificate(folder).both} alpn h2,http/1.1` : ''
  const [burst, sustained] = limits === 'tight' ? [1, 1] : [1_000_000, 60_000_000]
  return written(
    folder,
    'haproxy.cfg',
    `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
backend second
  stick-table type string len 64 size 1m expire 2s store http_req_rate(1s)
backend minute
  stick-table type string len 64 size 1m expire 120s store http_req_rate(60s)
frontend in
  bind 127.0.0.1:${port}${secured}
  http-request track-sc0 hdr(host) table second
  http-request track-sc1 hdr(host) table minute
  http-request deny deny_status 429 if { sc_http_req_rate(0,second) gt ${burst} } || { sc_http_req_rate(1,minute) gt ${sustained} }
  default_backend app
backend app
  server a 127.0.0.1:${upstreamPort}
`,
  )
}

/** A self-signed certificate for `bench.test` and its key: paths of PEM files; `both` holds the two in one. */
export function certificate(folder: string) {
  mkdirSync(folder, { recursive: true })
  const { certFile: cert, keyFile: key, ...text } = makeCertificate(folder, 'bench.test')
  return { cert, key, both: written(folder, 'both.pem', text.cert + text.key) }
}

function written(folder: string, name: string, text: string): string {
  mkdirSync(folder, { recursive: true })
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
