/** Traefik's rateLimit and inFlightReq. */
import type { KeyPart } from '../../config/words/words.js'
import type { Migration } from './migration.js'
import { tokenBucketOf, windowOf } from './rate.js'
import type { Section } from './source.js'
import type { Routed } from './traefik.js'

interface Into {
  readonly into: Migration
  /** True when it is known whose X-Forwarded-For is trusted. */
  readonly knows: boolean
}

/** True for a middleware that limits. */
export const isLimiter = (middleware: Section | undefined): boolean =>
  ['rateLimit', 'inFlightReq'].some(kind => kind in (middleware?.node ?? {}))

export function rateLimit(name: string, settings: Section, routed: Routed, { into, knows }: Into): void {
  settings.others(['average', 'period', 'burst', 'sourceCriterion'], into, 'Rules have no counterpart of it.')
  const average = settings.number('average') ?? 0
  if (average <= 0) {
    into.leftOut(settings.at(), 'an average of 0, which limits nothing.')
    return
  }
  const period = String(settings.node.period ?? '1s')
  const seconds = secondsOf(period)
  if (seconds === undefined) {
    const what = `a rate with the period "${period}", which is not a length of time such as 500ms or 1m30s.`
    into.leftOut(settings.at(), what)
    return
  }
  const burst = Math.max(1, settings.number('burst') ?? 1)
  const key = keyOf(settings.section('sourceCriterion'), 'client-ip', { into, knows })
  if (key === undefined) return
  const { name: router, projects, match } = routed
  const common = { name: `${router}-${name}`, match, projects }
  const before = `where Traefik lets ${burst} pass and then ${average} each ${period}`
  const token = tokenBucketOf(average / seconds, burst)
  const counter = JSON.stringify([router, settings.at().path])
  const isBucket =
    token !== undefined &&
    key.join() === 'client-ip' &&
    into.bucket({ ...common, key: 'client-ip', quota: token.quota, counter }, settings.at())
  if (isBucket) {
    if (!token.isExact)
      into.changed(
        settings.at(),
        `up to ${token.requests} pass at once and then ${token.requests} each ${token.seconds}s, ${before}.`,
      )
    return
  }
  const quota = windowOf(average / seconds, burst)
  if (quota === undefined) {
    into.leftOut(settings.at(), 'a rate whose window would be longer than a day.')
    return
  }
  into.changed(
    settings.at(),
    `up to ${quota.requests} pass at once and no more until ${quota.per} after the first, ${before}.`,
  )
  into.rules.meter({ ...common, key, quota, missing: 'shared' }, settings.at())
}

export function inFlight(
  name: string,
  settings: Section,
  { name: router, projects, match }: Routed,
  { into, knows }: Into,
): void {
  settings.others(['amount', 'sourceCriterion'], into, 'Rules have no counterpart of it.')
  const key = keyOf(settings.section('sourceCriterion'), 'host', { into, knows })
  const max = settings.number('amount')
  if (max !== undefined && key !== undefined)
    into.rules.slots(
      { name: `${router}-${name}`, match, projects, key, max, missing: 'shared' },
      settings.at(),
    )
}

/** The key that requests are grouped by; undefined, after reporting it, when a rule cannot count by it. */
function keyOf(source: Section, fallback: KeyPart, { into, knows }: Into): KeyPart[] | undefined {
  source.others(['ipStrategy', 'requestHeaderName', 'requestHost'], into, 'A key has no such part.')
  const header = source.text('requestHeaderName')
  if (header !== undefined) return [`header:${header.toLowerCase()}`]
  if (source.node.requestHost === true) return ['host']
  if (!('ipStrategy' in source.node)) return [fallback]
  const strategy = source.section('ipStrategy')
  strategy.others(['depth', 'excludedIPs', 'ipv6Subnet'], into, 'The key client-ip has no such setting.')
  if ('depth' in strategy.node || 'excludedIPs' in strategy.node) {
    const found =
      '"client-ip" is the first address from the right of X-Forwarded-For that is no trusted proxy'
    if (knows) into.changedOnce(strategy.at(), `${found}, whatever "depth" and "excludedIPs" say.`)
    else if (into.isNew(`strategy ${JSON.stringify(strategy.at().path)}`))
      into.lost(
        strategy.at(),
        `the search for clients’ addresses in X-Forwarded-For. Name your proxies under trustedProxies in gateway.yaml, or give the static configuration, too: ${found}.`,
      )
  }
  return ['client-ip']
}

const UNIT_SECONDS: Readonly<Record<string, number>> = {
  ns: 1e-9,
  us: 1e-6,
  ms: 1e-3,
  s: 1,
  m: 60,
  h: 3600,
}
/** A number and its unit in one of Go's durations, such as `1h30m` and `1.5s` (time.ParseDuration). */
const DURATION_PART = /(?<![\d.])(\d+(?:\.\d*)?|\.\d+)(ns|us|ms|s|m|h)/g
const LONGEST_PERIOD = 64

/** A period, which is a number of seconds or one of Go's durations; undefined when it is neither, or zero. */
function secondsOf(period: string): number | undefined {
  if (period.length > LONGEST_PERIOD) return undefined
  const isDuration = period.replace(DURATION_PART, '') === ''
  const seconds = isDuration
    ? [...period.matchAll(DURATION_PART)].reduce(
        (sum, [, count, unit = '']) => sum + Number(count) * (UNIT_SECONDS[unit] ?? Number.NaN),
        0,
      )
    : Number(/^\d+$/.exec(period)?.[0])
  return seconds > 0 ? seconds : undefined
}
