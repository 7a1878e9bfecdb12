/** Words used in configuration, policies and responses. Imports nothing, so every folder may import it. */

/** The plans and environments of the spec ('Project rate limits'), used when projects.yaml declares none. */
export const PLANS = ['developer', 'production', 'essential', 'growth', 'scale', 'enterprise'] as const
export const ENVIRONMENTS = ['development', 'staging', 'production'] as const

/** Words that projects.yaml declares. */
export type Plan = string
export type Environment = string

/** The plans and environments that projects.yaml declares, in its order. */
export interface PlanWords {
  readonly plans: readonly Plan[]
  readonly environments: readonly Environment[]
}

/** The plans and environments a row or rule applies to; an omitted list means all. */
export type Selector = Partial<PlanWords>

/** `growth/production`: the name of one column of the spec's tables. Neither word holds a "/". */
export function columnName(plan: Plan, environment: Environment): string {
  return `${plan}/${environment}`
}

/** The columns that a row's `for` list covers. */
export function columnsOf(selectors: readonly Selector[], words: PlanWords): Set<string> {
  const columns = new Set<string>()
  for (const { plans = words.plans, environments = words.environments } of selectors) {
    for (const plan of plans) {
      for (const environment of environments) columns.add(columnName(plan, environment))
    }
  }
  return columns
}

/** What requests of unknown projects are counted by. */
export const COUNT_UNKNOWN_BY = ['client', 'host', 'together'] as const
export type CountUnknownBy = (typeof COUNT_UNKNOWN_BY)[number]

/** Prefixes of the ids of unknown callers. No project of projects.yaml may have such an id. */
export const BY_CLIENT = 'client:'
export const BY_HOST = 'host:'
/** The id of all unknown callers that are counted together. */
export const TOGETHER = 'unknown:all'

/** Matches the ids that projects may have: limits are counted by them, so none may be an unknown caller's. */
export const PROJECT_ID_PATTERN = `^(?!${BY_CLIENT}|${BY_HOST}|${TOGETHER}$|\\.{1,2}$)[A-Za-z0-9._:-]{1,128}$`

const PROJECT_ID = new RegExp(PROJECT_ID_PATTERN)

/** True for an id that a project may have. */
export function isProjectId(id: string): boolean {
  return PROJECT_ID.test(id)
}

/** True for the ids that unknown callers have, by any setting. */
export function isUnknownCaller(id: string): boolean {
  return id.startsWith(BY_CLIENT) || id.startsWith(BY_HOST) || id === TOGETHER
}

/**
 * `unknownProject` of gateway.yaml: a plan of the spec, in its production environment; a plan and environment, and
 * what is counted by; or `reject`.
 */
export type UnknownProject =
  | string
  | {
      readonly plan: Plan
      readonly environment: Environment
      readonly countBy?: CountUnknownBy | undefined
    }

/** The plan and environment under which requests of unknown projects are counted; undefined when they are rejected. */
export function columnOfUnknown(setting: UnknownProject) {
  if (setting === 'reject') return undefined
  if (typeof setting === 'string') return { plan: setting, environment: 'production' }
  const { plan, environment } = setting
  return { plan, environment }
}

/** What requests of unknown projects are counted by: the client's address if nothing else is set. */
export function countsUnknownBy(setting: UnknownProject): CountUnknownBy {
  return (typeof setting === 'string' ? undefined : setting.countBy) ?? 'client'
}

/** `enforce` refuses requests over the limit, `report-only` lets them pass and logs them. */
export const MODES = ['enforce', 'report-only'] as const
export type Mode = (typeof MODES)[number]

/** What a rule does while the counter store is unavailable. */
export const ON_STORE_ERROR = ['local', 'open', 'closed'] as const
export type OnStoreError = (typeof ON_STORE_ERROR)[number]

/** What a rule does when a part of its key is absent from the request. */
export const MISSING = ['skip', 'shared', 'deny'] as const
export type Missing = (typeof MISSING)[number]

/**
 * How a window counts. `sliding-window`: no interval of its length admits more than the quota. `fixed-window`: begins
 * with the first request and ends as a whole. `token-bucket`: holds the quota when full and refills evenly.
 */
export const ALGORITHMS = ['sliding-window', 'fixed-window', 'token-bucket'] as const
export type Algorithm = (typeof ALGORITHMS)[number]

/** What an access entry does: `exempt` lifts every limit, `deny` refuses. */
export const ACCESS_ACTIONS = ['exempt', 'deny'] as const
export type AccessAction = (typeof ACCESS_ACTIONS)[number]
/** The calendar periods that a window may have; weeks begin on Monday. */
export const CALENDAR_UNITS = ['day', 'week', 'month'] as const
export type CalendarUnit = (typeof CALENDAR_UNITS)[number]

/** Written instead of the length of a window: it never begins anew, and only credit adds to it. */
export const LIFETIME = 'lifetime'

/** Written instead of a quota: nothing is counted. */
export const UNLIMITED = 'unlimited'

/** The kind of rules that count by source. */
export const VOLUMETRIC = 'volumetric'

/** The kind of rules that bound how many requests are under way at the same time. */
export const IN_FLIGHT = 'in-flight'

/** Keys that every rule has, whatever its kind. */
export const COMMON_RULE_KEYS = [
  'id',
  'match',
  'when',
  'reads',
  'key',
  'mode',
  'enforceFor',
  'since',
  'missing',
  'onStoreError',
  'refuse',
] as const
export type CommonRuleKey = (typeof COMMON_RULE_KEYS)[number]

/** What a refusal shows of a bucket or rule. */
export interface RefuseSetting {
  readonly fields: 'none'
}

/** The keys of a rule that belong to its plugin. */
export function pluginConfig(rule: object): Record<string, unknown> {
  const isOwn = (key: string) => !(COMMON_RULE_KEYS as readonly string[]).includes(key)
  return Object.fromEntries(Object.entries(rule).filter(([key]) => isOwn(key)))
}

/** The parts that a counter's key may consist of, besides headers. */
export const KEY_PARTS = [
  'project',
  'path',
  'full-path',
  'host',
  'email-or-flow',
  'json-rpc',
  'client-ip',
  'ja3',
  'ja4',
  'auth',
  'method',
] as const
export type KeyPart = (typeof KEY_PARTS)[number] | `header:${string}`
/** The parts that a bucket may count by: every request has them. */
export const BUCKET_KEY_PARTS = ['project', 'client-ip', 'json-rpc'] as const satisfies readonly KeyPart[]
export type BucketKeyPart = (typeof BUCKET_KEY_PARTS)[number]

/** Fields that belong to one connection, not to the message (RFC 9110 section 7.6.1). */
export const HOP_BY_HOP_FIELDS = [
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
] as const

/** Request fields that the gateway writes itself, or has already acted on. */
export const REPLACED_FIELDS = [
  'content-length',
  'expect',
  'forwarded',
  'host',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
] as const

/**
 * Fields in which a POST may name another method: rules would see one method, and the upstream would execute the
 * other.
 */
export const METHOD_OVERRIDE_FIELDS = [
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
] as const

/**
 * Request fields in which proxies, CDNs and load balancers tell a server behind them the client's address, host, scheme
 * or path. Applications and frameworks believe them, so a client must not set them. `proxy` becomes the variable
 * HTTP_PROXY in CGI programs (CVE-2016-5385).
 */
export const CLIENT_FACT_FIELDS: readonly string[] = [
  'cf-connecting-ip cf-connecting-ipv6 cf-ipcountry cf-pseudo-ipv4 cf-visitor client-ip fastly-client-ip',
  'fastly-ssl forwarded-for front-end-https http-client-ip http-x-forwarded-for proxy proxy-client-ip',
  'true-client-ip wl-proxy-client-ip x-appengine-remote-addr x-appengine-user-ip x-arr-ssl x-azure-clientip',
  'x-azure-socketip x-client-ip x-cluster-client-ip x-envoy-external-address x-envoy-original-host',
  'x-envoy-original-method x-envoy-original-path x-forward-for x-forwarded x-host x-http-host',
  'x-http-host-override x-original-for x-original-forwarded-for x-original-host x-original-method',
  'x-original-path x-original-proto x-original-uri x-original-url x-originating-ip x-proxyuser-ip x-real-ip',
  'x-remote-addr x-remote-ip x-rewrite-url x-scheme x-source-ip x-true-client-ip x-url-scheme',
].flatMap(line => line.split(' '))

/** Where the admin port is unless gateway.yaml says otherwise. */
export const ADMIN_DEFAULT = { host: '127.0.0.1', port: 8081 }

/** Who speaks HTTP/2 with clients: the gateway's own implementation, or that of Node. */
export const HTTP2_WIRES = ['own', 'node'] as const
export type Http2Wire = (typeof HTTP2_WIRES)[number]

/** After what a request may be tried again: no connection, or a status of the upstream. */
export const RETRY_REASONS = ['connect', 502, 503, 504] as const
export type RetryReason = (typeof RETRY_REASONS)[number]

/** How requests are spread over the addresses of an upstream. */
export const BALANCES = ['least-busy', 'round-robin'] as const
export type Balance = (typeof BALANCES)[number]

/** What an upstream is spoken to by: HTTP/1.1, HTTP/2 within TLS, or HTTP/2 in the clear, without a negotiation. */
export const UPSTREAM_PROTOCOLS = ['http1', 'h2', 'h2c'] as const
export type UpstreamProtocol = (typeof UPSTREAM_PROTOCOLS)[number]
