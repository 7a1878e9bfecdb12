/** The starter configuration: what `init` writes, and what `serve --upstream` runs. */
import type { FileContents } from '../../config/files.js'
import type { Option } from '../command.js'
import { readLimits, readUpstream, type StarterLimit } from './options.js'

/** The options that determine its content. */
export const STARTER = {
  upstream: { type: 'string', value: 'URL', help: 'your own service, such as http://127.0.0.1:3000' },
  limit: {
    type: 'string',
    value: 'N/TIME',
    multiple: true,
    help: 'requests from each client address: 100/m (the default), 10/s, 1000/h; may be given several times',
  },
} as const satisfies Record<string, Option>

const USUAL_UPSTREAM = 'http://127.0.0.1:3000'
const USUAL_LIMITS = ['100/m']

export interface Starter {
  /** Scheme, host and port. */
  readonly upstream: string
  readonly limits: readonly StarterLimit[]
}

/** @throws {Unusable} when an option is invalid */
export function readStarter(written: {
  readonly upstream: string | undefined
  readonly limit: readonly string[]
}): Starter {
  return {
    upstream: readUpstream(written.upstream ?? USUAL_UPSTREAM),
    limits: readLimits(written.limit.length === 0 ? USUAL_LIMITS : written.limit),
  }
}

const POLICY = 'policies/limits.yaml'

/** The files' texts by their paths in the configuration's folder. */
export function starterFiles({ upstream, limits }: Starter): Record<string, string> {
  return { 'gateway.yaml': gatewayYaml(upstream), 'projects.yaml': PROJECTS, [POLICY]: limitsYaml(limits) }
}

/** A folder that does not exist on disk: messages and records name its files. */
export const GENERATED = '(generated)'

/** The same as file contents for a load, in the folder `GENERATED`. */
export function starterContents(starter: Starter): FileContents {
  const texts = Object.entries(starterFiles(starter))
  return {
    texts: texts.map(([name, text]) => [`${GENERATED}/${name}`, { text }]),
    secrets: [],
    folders: [[`${GENERATED}/policies`, ['limits.yaml']]],
  }
}

const gatewayYaml = (upstream: string): string =>
  `# Where the gateway listens and where it sends requests. Limits are in policies/, callers in projects.yaml.
# All settings and what they mean: sluice schema gateway
version: 1
listen: { host: "\${LISTEN_HOST:-127.0.0.1}", port: "\${PORT:-8080}" }
admin: { host: "\${ADMIN_HOST:-127.0.0.1}", port: "\${ADMIN_PORT:-8081}", key: "\${ADMIN_KEY:-}" } # the key is required unless the host is loopback
redis: "\${REDIS_URL:-}" # empty: counters are kept in this process and lost when it ends

upstreams:
  app: { url: "${upstream}" }
routes:
  - { path: /**, upstream: app } # the most specific path wins

# Behind a load balancer or in a container, list the addresses of the proxies: clients are then told apart by
# X-Forwarded-For. Otherwise all clients of a proxy count as one.
trustedProxies: [] # [10.0.0.0/8]
`

const PROJECTS = `# Known callers, if you need them: limits can differ by plan and environment, and can be counted by project.
version: 1
projects: [] # [{ id: acme, plan: growth, environment: production, hosts: [acme.example.com] }]
`

const limitsYaml = (limits: readonly StarterLimit[]): string => `# How many requests each client may send.
version: 1
kind: project-limits

# A request falls into the most specific bucket.
buckets:
  everything: { match: ["*"], key: [client-ip] } # without "key" a bucket counts by project
#  login: { match: [POST /login], key: [client-ip] }

limits:
  - for: [{}] # every plan and environment
    quotas:
      everything:
        windows:
${limits.map(({ name, requests, per }) => `          - { name: ${name}, requests: ${requests}, per: ${per} }\n`).join('')}#      login: { windows: [{ name: minute, requests: 5, per: 1m }] }
`
