/** The configuration of all gateways of the run. */
export const DEADLINE_MS = 250
/** Requests a minute, and requests a second. */
export const QUOTA = 400
export const BURST = 150
/** Requests in flight at a time. */
export const SLOTS = 4
export const WORK_MS = 100
/** One for each cell, and one for each check whether the gateways count together. */
export const PROJECTS = Array.from({ length: 3000 }, (_, i) => `p${i}`)

export const hostOf = project => `${project}.localhost`

export const POLICIES = {
  'project-limits.yaml': `version: 1
kind: project-limits
buckets: { pages: [GET /] }
limits: [{ for: [{}], quotas: { pages: { burst: ${BURST}, sustained: ${QUOTA} } } }]
`,
  'in-flight.yaml': `version: 1
kind: in-flight
rules: [{ id: work, match: [POST /work], key: [project], max: ${SLOTS}, mode: enforce, slotTtl: 5s }]
`,
  'volumetric.yaml': `version: 1
kind: volumetric
rules: [{ id: watch, match: [GET /], reads: true, key: [project], quota: { requests: 5, per: 1m }, mode: report-only }]
`,
}

/** A rule whose counters lie in another slot than the project's. */
export const BY_CLIENT = {
  'clients.yaml': `version: 1
kind: volumetric
rules: [{ id: clients, match: [GET /], reads: true, key: [client-ip], quota: { requests: 1000000, per: 1m }, mode: enforce }]
`,
}

/** @returns gateway.yaml for that Redis */
export const gatewayYaml = (redis, upstream) => `version: 1
listen: { host: 127.0.0.1, port: 0, maxEventLoopDelay: 1h }
admin: { host: 127.0.0.1, port: 0 }
redis: ${redis}
store: { deadline: ${DEADLINE_MS}ms, instances: 2, onError: local }
upstreams: { app: { url: "${upstream}" } }
routes: [{ path: /**, upstream: app }]
`

export const projectsYaml = () =>
  `version: 1\nprojects:\n${PROJECTS.map(id => `  - { id: ${id}, plan: growth, environment: production, hosts: [${hostOf(id)}] }\n`).join('')}`
