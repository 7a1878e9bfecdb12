/** Descriptors of Envoy's rate limit service (envoyproxy/ratelimit, README, 'Configuration'). */
import type { KeyPart } from '../../config/words/words.js'
import type { Origin } from './findings.js'
import type { Migration } from './migration.js'
import { asLiteral, below, wholeSegments } from './places.js'
import { readYaml, type Section, type SourceFile, words } from './yaml.js'

const SECONDS: Readonly<Record<string, number>> = { second: 1, minute: 60, hour: 3600, day: 86_400 }
/** The longest window of a volumetric rule, in seconds. */
const LONGEST = 86_400
const NO_COUNTERPART = 'Rules have no counterpart of it.'
const DESCRIPTOR = words('key value rate_limit shadow_mode descriptors detailed_metric share_threshold')
const RATE_LIMIT = words('unit requests_per_unit unlimited unit_multiplier')
const WANTED = {
  format: 'ratelimit',
  name: 'a file of envoyproxy/ratelimit',
  keys: ['domain', 'descriptors'],
}

/** The conditions of a limit, from the outermost descriptor to its own. */
interface Trail {
  readonly key: readonly KeyPart[]
  readonly path?: string
  /** What the path begins with, where the value ends in `*`. */
  readonly prefix?: string
  readonly method?: string
  readonly network?: string
}

export function importRatelimit(source: SourceFile, into: Migration): void {
  const file = readYaml(source, WANTED, into)
  if (file === undefined) return
  file.others(['domain', 'descriptors'], into, 'This is not a setting of a rate limit file.')
  const upstream = into.upstreams.addUnknown()
  const everything = { hosts: [], kind: 'prefix', path: '/', rank: [0], patterns: ['/**'] } as const
  into.open({ ...everything, route: { upstream } }, { line: 1, col: 1 })
  readDescriptors(file, { key: [] }, file.text('domain') ?? 'limit', into)
}

function readDescriptors(holder: Section, trail: Trail, name: string, into: Migration): void {
  const list = holder.list('descriptors')
  const general = generalRates(list)
  for (const one of list) {
    const deeper = followed(one, trail, into)
    if (deeper === undefined) continue
    const own = `${name}-${one.text('key')}`
    one.others(DESCRIPTOR, into, NO_COUNTERPART)
    const isBare = !('rate_limit' in one.node) && !('descriptors' in one.node)
    if ('rate_limit' in one.node || (isBare && 'value' in one.node))
      readLimit(one, deeper, own, general, into)
    readDescriptors(one, deeper, own, into)
  }
}

/** The trail with one more descriptor; undefined, after reporting it, when no rule can match by that. */
function followed(one: Section, trail: Trail, into: Migration): Trail | undefined {
  const key = one.text('key')
  const value = one.text('value')
  const isWild = value?.endsWith('*') ?? false
  const counted = (part: KeyPart): Trail => ({ ...trail, key: [...trail.key, part] })
  switch (key) {
    case 'remote_address':
    case 'masked_remote_address':
      if (!isWild) return { ...counted('client-ip'), ...(value !== undefined && { network: value }) }
      into.leftOut(one.at('value'), `the addresses "${value}". Networks are written as 10.0.0.0/8.`)
      return undefined
    case 'path':
    case ':path': {
      if (value === undefined) return counted('full-path')
      if (!isWild) return { ...trail, path: value }
      // The service's own wildcard. Each value that it matches has a counter of its own.
      const prefix = value.slice(0, -1)
      if (!prefix.endsWith('/')) into.changed(one.at('value'), wholeSegments(prefix))
      return { ...(one.node.share_threshold === true ? trail : counted('full-path')), prefix }
    }
    case 'method':
    case ':method':
      return value === undefined ? counted('method') : { ...trail, method: value }
    default: {
      const why = 'Its value comes from the actions of Envoy’s routes, which are not in this file.'
      into.leftOut(one.at('key'), `the descriptor "${key}" and all below it. ${why}`)
      return undefined
    }
  }
}

const isOfAddressAlone = ({ path, prefix, method }: Trail): boolean =>
  path === undefined && prefix === undefined && method === undefined

function readLimit(
  one: Section,
  trail: Trail,
  name: string,
  general: ReadonlyMap<string, number>,
  into: Migration,
): void {
  const rate = one.section('rate_limit')
  const at = rate.at()
  rate.others(RATE_LIMIT, into, NO_COUNTERPART)
  const { key, network, path, prefix, method } = trail
  const reportOnly = one.node.shadow_mode === true
  // A value without a limit is unlimited, whatever applies to other values.
  if (rate.node.unlimited === true || !('rate_limit' in one.node)) {
    const why = 'What no rule matches is not limited.'
    if (network !== undefined && isOfAddressAlone(trail)) into.rules.exempt(name, [network], at)
    else into.leftOut(at, `"unlimited" for something other than an address. ${why}`)
    return
  }
  const requests = rate.number('requests_per_unit')
  if (requests === 0 && !reportOnly) {
    refuse(trail, at, into)
    return
  }
  const seconds = secondsOf(rate)
  const least = 'value' in one.node ? general.get(one.text('key') ?? '') : undefined
  const fault = faultOf(requests, seconds, rate.text('unit'), least)
  if (fault !== undefined) {
    into.leftOut(at, fault)
    return
  }
  const exact = path === undefined ? '/**' : asLiteral(path)
  const pattern = prefix === undefined ? exact : below(prefix)
  const meter = {
    name,
    match: [method === undefined ? pattern : `${method.toUpperCase()} ${pattern}`],
    // Without a part that identifies the client, all requests are counted together.
    key: key.length === 0 ? ['path' as const] : [...new Set(key)],
    ...(network !== undefined && { networks: [network] }),
    reportOnly,
    quota: { requests: requests as number, per: `${seconds}s` },
  }
  into.rules.meter(meter, at)
}

/** Why no rule can have a limit. @param least the rate of the same descriptor without a value */
function faultOf(
  requests?: number,
  seconds?: number,
  unit = 'no unit',
  least = Number.POSITIVE_INFINITY,
): string | undefined {
  if (seconds === undefined || requests === undefined)
    return `a limit by ${unit}. A rule counts by second, minute, hour or day.`
  if (!Number.isInteger(requests) || requests < 1)
    return `a limit of ${requests} requests. A quota is a whole number from 1.`
  if (requests / seconds > least)
    return 'a limit above the one without this value: both would apply, and the lower one decides.'
  if (seconds > LONGEST) return 'a limit by more than a day, which is the longest a volumetric rule counts.'
  return undefined
}

/** The window of a limit, all its units together; undefined for a unit that a rule cannot have. */
function secondsOf(rate: Section): number | undefined {
  const unit = SECONDS[(rate.text('unit') ?? '').toLowerCase()]
  return unit && unit * Math.max(1, rate.number('unit_multiplier') ?? 1)
}

/**
 * The lowest rate of descriptors without a value, by key. Of those with a value and one without, Envoy applies the first
 * that matches; here every matching rule applies.
 */
function generalRates(list: readonly Section[]): ReadonlyMap<string, number> {
  const rates = new Map<string, number>()
  for (const one of list) {
    const rate = one.section('rate_limit')
    const seconds = secondsOf(rate)
    if ('value' in one.node || seconds === undefined) continue
    const key = one.text('key') ?? ''
    const known = rates.get(key) ?? Number.POSITIVE_INFINITY
    rates.set(key, Math.min(known, (rate.number('requests_per_unit') ?? 0) / seconds))
  }
  return rates
}

/** A limit of no requests refuses whatever matches it. */
function refuse(trail: Trail, at: Origin, into: Migration): void {
  const { network, path, prefix } = trail
  if (network !== undefined && isOfAddressAlone(trail)) {
    into.rules.deny([network], at)
    return
  }
  const isExact = prefix === undefined && path !== undefined
  const place = { kind: isExact ? 'exact' : 'prefix', path: prefix ?? path ?? '/' } as const
  into.close({ hosts: [], ...place, rank: [1] }, 'closed by a limit of no requests', at)
}
