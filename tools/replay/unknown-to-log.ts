/** What policies decide by that a log cannot hold, whatever its requests are. */
import { isProjectLimits } from '../../config/load.js'
import { isLifetime, type Quota, windowsOf } from '../../config/words/quota.js'
import { UNLIMITED } from '../../config/words/words.js'
import type { Configuration } from '../../gateway/configured/load.js'
import { type NamedRule, names, rulesOf } from './policies.js'
import type { Format, LoggedFacts } from './traffic.js'

/** The policies of a replay, with what the log's lines tell of each request. */
export interface Judging {
  readonly policies: readonly Configuration[]
  readonly rules: readonly NamedRule[]
  /** True for the gateway's own records, in which what may be personal is hashed or shortened. */
  readonly isRecords: boolean
  /** True when every line tells one of these. */
  knows(...some: readonly LoggedFacts[]): boolean
}

export function judgingBy(policies: readonly Configuration[], formats: ReadonlySet<Format>): Judging {
  return {
    policies,
    rules: rulesOf(policies),
    isRecords: [...formats].some(({ name }) => name === 'records'),
    knows: (...some) => [...formats].every(({ facts }) => some.some(fact => facts.has(fact))),
  }
}

/** Parts of keys that decision records contain as hashes. */
const HASHED_PART = /^(client-ip|full-path|email-or-flow|json-rpc|header:.*)$/

/** A hash of the key decides whether it is inside a share, so hashed parts change the selection. */
export function hashedShares({ rules, isRecords }: Judging): string[] {
  const shared = rules.filter(
    ({ enforceFor, key }) => enforceFor !== undefined && key.some(part => HASHED_PART.test(part)),
  )
  if (!isRecords || shared.length === 0) return []
  return [
    `The log holds hashes of what these rules count by, so as many keys are inside their shares here as at the gateway, but not the same ones: ${names(shared)}.`,
  ]
}

/** What the conditions of rules need but the log records only in part. */
export function shortenedConditions({ rules, isRecords }: Judging): string[] {
  const byNetwork = rules.filter(({ when }) => when?.networks !== undefined)
  const verified = rules.filter(({ when }) => when?.authenticated === 'verified')
  if (isRecords && byNetwork.length > 0) {
    return [
      `The log has only the network of an address, /24 of IPv4 and /64 of IPv6, so smaller networks in the "when" of ${names(byNetwork)} are judged by its first address.`,
    ]
  }
  if (isRecords || verified.length === 0) return []
  return [
    `The log does not say whose credentials were verified, so these rules count nothing here: ${names(verified)}.`,
  ]
}

/** The prefix lengths to which decision records shorten addresses. */
const HASH_BITS = { v4: 24, v6: 64 }

/** Access entries whose networks the log cannot distinguish. */
export function shortenedNetworks({ policies, isRecords, knows }: Judging): string[] {
  const isReported = knows('client')
  const unlogged = policies.flatMap(({ compiled }) =>
    compiled.access.entries.filter(({ networks }) =>
      networks.some(
        ({ words, bits }) =>
          !isReported || (isRecords && bits > (words.length === 1 ? HASH_BITS.v4 : HASH_BITS.v6)),
      ),
    ),
  )
  if (unlogged.length === 0) return []
  const entries = names(unlogged.map(({ rule }) => rule))
  if (!isReported)
    return [`The log has no addresses, so networks of these access entries are not seen: ${entries}.`]
  return [
    `The log has only the network of an address, /24 of IPv4 and /64 of IPv6, so smaller networks of these access entries are not seen: ${entries}.`,
  ]
}

export function leftOutLeases({ policies }: Judging): string[] {
  const leased = quotasOf(policies).some(quota => quota.lease)
  return leased ? ['Leases are left out: several gateways that lease may refuse up to 10 % earlier.'] : []
}

export function leftOutLifetimes({ policies }: Judging): string[] {
  const prepaid = quotasOf(policies).some(quota => windowsOf(quota).some(isLifetime))
  return prepaid
    ? [
        'Lifetime windows are left out: a log does not tell what was spent before it, nor what credit was given.',
      ]
    : []
}

/** The quotas of all rows. */
function quotasOf(policies: Judging['policies']): Quota[] {
  return policies
    .flatMap(({ config }) =>
      config.policies.flatMap(policy => (isProjectLimits(policy) ? policy.document.limits : [])),
    )
    .flatMap(({ quotas }) => Object.values(quotas).filter(quota => quota !== UNLIMITED))
}
