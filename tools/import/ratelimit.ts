/** Descriptors of Envoy's rate limit service (envoyproxy/ratelimit, README, 'Configuration'). */
import type { KeyPart } from '../../config/words/words.js'
import type { Migration } from './migration.js'
import type { Origin } from './parts.js'
import { asLiteral, below } from './paths.js'
import { readYaml, type Section } from './source.js'

/** Units that a volumetric rule can have; longer windows than a day are not possible. */
const SECONDS: Readonly<Record<string, number>> = { second: 1, minute: 60, hour: 3600, day: 86_400 }
const IN_ROUTES = 'Its value comes from the actions of Envoy’s routes, which are not in this file.'

/** The conditions of a limit, from the outermost descriptor to its own. */
interface Trail {
  readonly key: readonly KeyPart[]
  readonly path?: string
  /** What the path begins with, where the value ends in `*`. */
  readonly prefix?: string
  readonly method?: string
  readonly network?: string
}

const WANTED = {
  format: 'ratelimit',
  name: 'a file of envoyproxy/ratelimit',
  keys: ['domain', 'descriptors'],
}

/** Reads `text` into the migration. */
export function importRatelimit(text: string, into: Migration): void {
  const file = readYaml(text, WANTED, into)
  if (file === undefined) return
  file.others(['domain', 'descriptors'], into, 'This is not a setting of a rate limit file.')
  const start = { line: 1, col: 1 }
  into.changed(start, 'the file names no upstream; http://127.0.0.1:3000 stands in for it.')
  const upstream = into.upstreams.add('app', ['http://127.0.0.1:3000'], start) ?? ''
  into.open({ hosts: [], kind: 'prefix', path: '/', rank: [0], patterns: ['/**'], upstream }, start)
  descriptors(file, { key: [] }, file.text('domain') ?? 'limit', into)
}

function descriptors(holder: Section, trail: Trail, name: string, into: Migration): void {
  const list = holder.list('descriptors')
  const general = generalRates(list)
  for (const one of list) {
    const deeper = followed(one, trail, into)
    if (deeper === undefined) continue
    const own = `${name}-${one.text('key')}`
    one.others(
      ['key', 'value', 'rate_limit', 'shadow_mode', 'descriptors', 'detailed_metric', 'share_threshold'],
      into,
      'Rules have no counterpart of it.',
    )
    const isBare = !('rate_limit' in one.node) && !('descriptors' in one.node)
    if ('rate_limit' in one.node || (isBare && 'value' in one.node)) limit(one, deeper, own, general, into)
    descriptors(one, deeper, own, into)
  }
}

/** The trail with one more descriptor; undefined, after reporting it, when no rule can match by that. */
function followed(one: Section, trail: Trail, into: Migration): Trail | undefined {
  const key = one.text('key')
  const value = one.text('value')
  const isKnown = key === 'remote_address' || key === 'masked_remote_address'
  if (isKnown && value?.endsWith('*')) {
    into.leftOut(one.at('value'), `the addresses "${value}". Networks are written as 10.0.0.0/8.`)
    return undefined
  }
  if (isKnown && value !== undefined) return { ...trail, network: value, key: [...trail.key, 'client-ip'] }
  if (isKnown) return { ...trail, key: [...trail.key, 'client-ip'] }
  if (key === 'path' || key === ':path') {
    if (value?.endsWith('*')) {
      // Each value that the wildcard matches has a counter of its own.
      const key = one.node.share_threshold === true ? trail.key : [...trail.key, 'full-path' as const]
      return { ...trail, key, prefix: prefixOf(value, one, into) }
    }
    if (value !== undefined) return { ...trail, path: value }
    return { ...trail, key: [...trail.key, 'full-path'] }
  }
  if (key === 'method' || key === ':method') {
    return value === undefined ? { ...trail, key: [...trail.key, 'method'] } : { ...trail, method: value }
  }
  into.leftOut(one.at('key'), `the descriptor "${key}" and all below it. ${IN_ROUTES}`)
  return undefined
}

/** The service's own wildcard: a value with a final star matches what begins so. */
function prefixOf(value: string, one: Section, into: Migration): string {
  const prefix = value.slice(0, -1)
  if (!prefix.endsWith('/')) {
    into.changed(
      one.at('value'),
      `${below(prefix)} matches whole segments: ${prefix} and all below it, not ${prefix}x.`,
    )
  }
  return prefix
}

function limit(
  one: Section,
  trail: Trail,
  name: string,
  general: ReadonlyMap<string, number>,
  into: Migration,
): void {
  const rate = one.section('rate_limit')
  const at = rate.at()
  rate.others(
    ['unit', 'requests_per_unit', 'unlimited', 'unit_multiplier'],
    into,
    'Rules have no counterpart of it.',
  )
  // A value without a limit is unlimited, whatever applies to other values.
  if (rate.node.unlimited === true || !('rate_limit' in one.node)) {
    if (
      trail.network === undefined ||
      trail.path !== undefined ||
      trail.prefix !== undefined ||
      trail.method !== undefined
    ) {
      into.leftOut(
        at,
        '"unlimited" for something other than an address. What no rule matches is not limited.',
      )
      return
    }
    into.rules.exempt(name, [trail.network], at)
    return
  }
  const requests = rate.number('requests_per_unit')
  if (requests === 0 && one.node.shadow_mode !== true) {
    refused(trail, at, into)
    return
  }
  const seconds = secondsOf(rate)
  if (seconds === undefined || requests === undefined) {
    into.leftOut(
      at,
      `a limit by ${rate.text('unit') ?? 'no unit'}. A rule counts by second, minute, hour or day.`,
    )
    return
  }
  if (!Number.isInteger(requests) || requests < 1) {
    into.leftOut(at, `a limit of ${requests} requests. A quota is a whole number from 1.`)
    return
  }
  if (
    'value' in one.node &&
    requests / seconds > (general.get(one.text('key') ?? '') ?? Number.POSITIVE_INFINITY)
  ) {
    into.leftOut(at, 'a limit above the one without this value: both would apply, and the lower one decides.')
    return
  }
  if (seconds > 86_400) {
    into.leftOut(at, 'a limit by more than a day, which is the longest a volumetric rule counts.')
    return
  }
  const exact = trail.path === undefined ? '/**' : asLiteral(trail.path)
  const path = trail.prefix === undefined ? exact : below(trail.prefix)
  into.rules.meter(
    {
      name,
      match: [trail.method === undefined ? path : `${trail.method.toUpperCase()} ${path}`],
      // Without a part that identifies the client, all requests are counted together.
      key: trail.key.length === 0 ? ['path'] : [...new Set(trail.key)],
      ...(trail.network !== undefined && { networks: [trail.network] }),
      reportOnly: one.node.shadow_mode === true,
      quota: { requests, per: `${seconds}s` },
    },
    at,
  )
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
    if ('value' in one.node) continue
    const rate = one.section('rate_limit')
    const seconds = secondsOf(rate)
    if (seconds === undefined) continue
    const key = one.text('key') ?? ''
    const known = rates.get(key) ?? Number.POSITIVE_INFINITY
    rates.set(key, Math.min(known, (rate.number('requests_per_unit') ?? 0) / seconds))
  }
  return rates
}

/** A limit of no requests refuses whatever matches it. */
function refused({ network, path, prefix, method }: Trail, at: Origin, into: Migration): void {
  if (network !== undefined && path === undefined && prefix === undefined && method === undefined) {
    into.rules.deny([network], at)
    return
  }
  const place =
    prefix !== undefined
      ? ({ kind: 'prefix', path: prefix } as const)
      : path !== undefined
        ? ({ kind: 'exact', path } as const)
        : ({ kind: 'prefix', path: '/' } as const)
  into.close({ hosts: [], ...place, rank: [1] }, 'closed by a limit of no requests', at)
}
