/** A whole gateway in the test's own process, with a configuration written for the test. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Http2Wire } from '../../config/words/words.js'
import { load, loadOrFail } from '../../gateway/configured/load.js'
import { type RunningGateway, startGateway } from '../../gateway/run/gateway.js'
import { openWrongKeys } from '../../gateway/run/wrong-keys.js'
import type { Log } from '../../gateway/types.js'
import type { TargetRules } from '../../webhooks/target.js'

export interface TestGatewayOptions {
  /** Address of the upstream. */
  readonly upstream: string
  /** Further addresses of the upstream. */
  readonly others?: readonly string[]
  /** PEM file of the certificate authority for an https upstream. */
  readonly ca?: string
  /** Terminates TLS with these files. */
  readonly tls?: {
    readonly certFile: string
    readonly keyFile: string
    /** Further keys of `listen.tls`, as written in YAML. */
    readonly settings?: Readonly<Record<string, string>>
  }
  /** Who speaks HTTP/2 with clients; the default of the setting if omitted. */
  readonly http2?: Http2Wire
  /** Further keys of `listen`. */
  readonly limits?: string
  /** How late the event loop may run before requests are shed: high by default, because tests share the process. */
  readonly maxEventLoopDelay?: string
  /** Where notifications may be sent; default: as without settings. */
  readonly webhookTargets?: TargetRules
  /** How long requests may take to finish when it is drained. */
  readonly drain?: string
  /** Key of the admin port. */
  readonly adminKey?: string
  /** Further lines of gateway.yaml. */
  readonly settings?: string
  /** Timeouts of the upstream. */
  readonly timeouts?: string
  /** Further keys of the upstream. */
  readonly upstreamSettings?: string
  /** Path pattern of the route to the upstream. */
  readonly route?: string
  /** Further keys of that route. */
  readonly routeSettings?: string
  /** The routes, as YAML maps, in place of that one. */
  readonly routes?: readonly string[]
  /** Addresses of further upstreams, by name. */
  readonly upstreams?: Readonly<Record<string, string>>
  readonly projects?: string
  /** Policy files by name. */
  readonly policies?: Readonly<Record<string, string>>
}

export interface TestGateway extends RunningGateway {
  /** Holds gateway.yaml, projects.yaml and policies/. */
  readonly folder: string
  /** Every line of the log: its fields, with the message as `msg`. */
  readonly lines: Record<string, unknown>[]
}

const TIMEOUTS = '{ connect: 1s, head: 2s, idle: 2s }'

/** The projects of a test that gives none: `dev` on dev.localhost, `acme` on acme.localhost. */
export const PROJECTS = `version: 1
projects:
  - { id: dev, plan: developer, environment: development, hosts: [dev.localhost] }
  - { id: acme, plan: growth, environment: production, hosts: [acme.localhost] }
`

/** Starts a gateway on free ports; it is drained when the test ends. */
export async function testGateway(t: Test, options: TestGatewayOptions): Promise<TestGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'policies'))
  writeFileSync(join(folder, 'gateway.yaml'), gatewayYaml(options))
  writeFileSync(join(folder, 'projects.yaml'), options.projects ?? PROJECTS)
  for (const [name, text] of Object.entries(options.policies ?? {})) {
    writeFileSync(join(folder, 'policies', name), text)
  }
  const lines: Record<string, unknown>[] = []
  const log = recordingLog(lines)
  const first = await loadOrFail(folder, {}, log)
  const { wrongKeys, close } = openWrongKeys(first.config.gateway.redis, log)
  t.teardown(close)
  const gateway = await startGateway({
    first,
    load: () => load(folder, {}, log, { running: first.plugins }),
    embedded: async name => {
      throw new Error(`no ${name} service in this test`)
    },
    secret: Buffer.from('test'),
    wrongKeys,
    webhookTargets: options.webhookTargets ?? { allowPrivate: false, allowHttp: false },
    log,
  })
  let drained: Promise<void> | undefined
  const drain = () => {
    drained ??= gateway.drain()
    return drained
  }
  t.teardown(drain)
  return { ...gateway, folder, lines, drain }
}

/** Tests of limits want a Retry-After that equals the wait. */
const EXACT = 'retryJitter: 0%'

/** The gateway.yaml of `testGateway`, for tests that edit it. */
export function gatewayYaml(options: TestGatewayOptions): string {
  const {
    upstream,
    others = [],
    ca,
    tls,
    http2,
    limits,
    adminKey,
    settings = '',
    timeouts = TIMEOUTS,
  } = options
  const {
    drain = '100ms',
    maxEventLoopDelay = '1h',
    route = '/**',
    routeSettings,
    upstreamSettings,
  } = options
  const { routes = [`{ path: ${route}, upstream: app${routeSettings ? `, ${routeSettings}` : ''} }`] } =
    options
  const more = Object.entries(options.upstreams ?? {}).map(([name, url]) => `, ${name}: { url: "${url}" }`)
  const address =
    others.length === 0 ? `url: "${upstream}"` : `urls: ${JSON.stringify([upstream, ...others])}`
  const terms = Object.entries(tls?.settings ?? {}).map(([key, value]) => `, ${key}: ${value}`)
  const files = tls ? `, tls: { cert: ${tls.certFile}, key: ${tls.keyFile}${terms.join('')} }` : ''
  return `version: 1
listen: { host: 127.0.0.1, port: 0, maxEventLoopDelay: ${maxEventLoopDelay}${files}${http2 ? `, http2: ${http2}` : ''}${limits ? `, ${limits}` : ''} }
admin: { host: 127.0.0.1, port: 0${adminKey ? `, key: ${adminKey}` : ''} }
upstreams: { app: { ${address}${ca ? `, ca: ${ca}` : ''}, timeouts: ${timeouts}${upstreamSettings ? `, ${upstreamSettings}` : ''} }${more.join('')} }
routes:
${routes.map(one => `  - ${one}`).join('\n')}
drain: ${drain}
${settings.includes('retryJitter:') ? '' : EXACT}
${settings}
`
}

function recordingLog(lines: Record<string, unknown>[]): Log {
  const write = (level: string) => (fields: object, msg: string) => {
    lines.push({ level, msg, ...fields })
  }
  return { debug() {}, info: write('info'), warn: write('warn'), error: write('error') }
}
