/** Traefik's rateLimit and inFlightReq: rules for the requests of a router. */
import type { KeyPart } from '../../config/words/words.js'
import type { Findings } from './findings.js'
import type { Migration } from './migration.js'
import { secondsOf } from './traefik-times.js'
import type { Section } from './yaml.js'

/** The requests of a router: patterns, and the projects of their hosts. */
export interface LimitedRequests {
  readonly name: string
  readonly projects: readonly string[]
  readonly match: readonly string[]
}

const LIMITERS: Readonly<Record<string, typeof rateLimit>> = { rateLimit, inFlightReq: inFlight }

export const isLimiter = (middleware: Section | undefined): boolean =>
  Object.keys(LIMITERS).some(kind => kind in (middleware?.node ?? {}))

/** Writes the limits of a middleware. @param knows true when it is known whose X-Forwarded-For is trusted */
export function limitBy(
  name: string,
  middleware: Section | undefined,
  requests: LimitedRequests,
  into: Migration,
  knows: boolean,
): void {
  for (const [kind, settings] of middleware?.members() ?? []) {
    const parts = { ...requests, name: `${requests.name}-${name}` }
    if (Object.hasOwn(LIMITERS, kind)) LIMITERS[kind]?.(settings, requests.name, parts, into, knows)
  }
}

function rateLimit(
  settings: Section,
  router: string,
  parts: LimitedRequests,
  into: Migration,
  knows: boolean,
): void {
  const at = settings.at()
  settings.others(['average', 'period', 'burst', 'sourceCriterion'], into, 'Rules have no counterpart of it.')
  const average = settings.number('average') ?? 0
  const period = String(settings.node.period ?? '1s')
  const seconds = secondsOf(period)
  if (average <= 0) into.leftOut(at, 'an average of 0, which limits nothing.')
  else if (seconds === undefined) {
    const why = 'which is not a length of time such as 500ms or 1m30s.'
    into.leftOut(at, `a rate with the period "${period}", ${why}`)
  } else {
    const burst = Math.max(1, settings.number('burst') ?? 1)
    const key = keyOf(settings.section('sourceCriterion'), 'client-ip', into, knows)
    const limit = {
      ...{ rate: average / seconds, atOnce: burst, counter: JSON.stringify([router, at.path]) },
      theirs: `where Traefik lets ${burst} pass and then ${average} each ${period}.`,
      refilled: (token: { readonly requests: number; readonly seconds: number }) =>
        `${token.requests} each ${token.seconds}s`,
      tooLong: 'a rate whose window would be longer than a day.',
      isSameAsOne: false,
    }
    into.limitRate({ ...parts, key, missing: 'shared' }, limit, at)
  }
}

function inFlight(
  settings: Section,
  _router: string,
  parts: LimitedRequests,
  into: Migration,
  knows: boolean,
): void {
  settings.others(['amount', 'sourceCriterion'], into, 'Rules have no counterpart of it.')
  const key = keyOf(settings.section('sourceCriterion'), 'host', into, knows)
  const max = settings.number('amount')
  if (max !== undefined) into.rules.slots({ ...parts, key, max, missing: 'shared' }, settings.at())
}

/** The key that requests are grouped by. */
function keyOf(source: Section, fallback: KeyPart, into: Findings, knows: boolean): KeyPart[] {
  source.others(['ipStrategy', 'requestHeaderName', 'requestHost'], into, 'A key has no such part.')
  const header = source.text('requestHeaderName')
  if (header !== undefined) return [`header:${header.toLowerCase()}`]
  if (source.node.requestHost === true) return ['host']
  if (!('ipStrategy' in source.node)) return [fallback]
  const strategy = source.section('ipStrategy')
  strategy.others(['depth', 'excludedIPs', 'ipv6Subnet'], into, 'The key client-ip has no such setting.')
  if (!('depth' in strategy.node) && !('excludedIPs' in strategy.node)) return ['client-ip']
  const at = strategy.at()
  const found = '"client-ip" is the first address from the right of X-Forwarded-For that is no trusted proxy'
  if (knows) into.changedOnce(at, `${found}, whatever "depth" and "excludedIPs" say.`)
  else {
    const advice =
      'Name your proxies under trustedProxies in gateway.yaml, or give the static configuration, too'
    const sentence = `the search for clients’ addresses in X-Forwarded-For. ${advice}: ${found}.`
    into.lost(at, sentence, `strategy ${JSON.stringify(at.path)}`)
  }
  return ['client-ip']
}
