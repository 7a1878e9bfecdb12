/** Descriptors of Envoy's rate limit service (envoyproxy/ratelimit, README, 'Configuration'). */
import type { KeyPart } from '../../config/words.js'
import type { Migration } from './migration.js'
import { asLiteral } from './paths.js'
import { readYaml, type Section } from './source.js'

/** Units that a volumetric rule can have; longer windows than a day are not possible. */
const SECONDS: Readonly<Record<string, number>> = { second: 1, minute: 60, hour: 3600, day: 86_400 }
const IN_ROUTES = 'Its value comes from the actions of Envoy’s routes, which are not in this file.'

/** The conditions of a limit, from the outermost descriptor to its own. */
interface Trail {
  readonly key: readonly KeyPart[]
  readonly path?: string
  readonly method?: string
  readonly network?: string
}

/** Reads `text` into the migration. */
export function importRatelimit(text: string, into: Migration): void {
  const file = readYaml(text, into)
  if (file === undefined) return
  file.others(['domain', 'descriptors'], into, 'This is not a setting of a rate limit file.')
  descriptors(file, { key: [] }, file.text('domain') ?? 'limit', into)
}

function descriptors(holder: Section, trail: Trail, name: string, into: Migration): void {
  for (const one of holder.list('descriptors')) {
    const deeper = followed(one, trail, into)
    if (deeper === undefined) continue
    const own = `${name}-${one.text('key')}`
    one.others(
      ['key', 'value', 'rate_limit', 'shadow_mode', 'descriptors', 'detailed_metric'],
      into,
      'Rules have no counterpart of it.',
    )
    const isBare = !('rate_limit' in one.node) && !('descriptors' in one.node)
    if ('rate_limit' in one.node || (isBare && 'value' in one.node)) limit(one, deeper, own, holder, into)
    descriptors(one, deeper, own, into)
  }
}

/** The trail with one more descriptor; undefined, after reporting it, when no rule can match by that. */
function followed(one: Section, trail: Trail, into: Migration): Trail | undefined {
  const key = one.text('key')
  const value = one.text('value')
  const isKnown = key === 'remote_address' || key === 'masked_remote_address'
  if (isKnown && value !== undefined) return { ...trail, network: value, key: [...trail.key, 'client-ip'] }
  if (isKnown) return { ...trail, key: [...trail.key, 'client-ip'] }
  if (key === 'path' || key === ':path') {
    if (value !== undefined) return { ...trail, path: asLiteral(value) }
    return { ...trail, key: [...trail.key, 'full-path'] }
  }
  if (key === 'method' || key === ':method') {
    return value === undefined ? { ...trail, key: [...trail.key, 'method'] } : { ...trail, method: value }
  }
  into.leftOut(one.at('key'), `the descriptor "${key}" and all below it. ${IN_ROUTES}`)
  return undefined
}

function limit(one: Section, trail: Trail, name: string, holder: Section, into: Migration): void {
  const rate = one.section('rate_limit')
  const at = rate.at()
  rate.others(
    ['unit', 'requests_per_unit', 'unlimited', 'unit_multiplier'],
    into,
    'Rules have no counterpart of it.',
  )
  // A value without a limit is unlimited, whatever applies to other values.
  if (rate.node.unlimited === true || !('rate_limit' in one.node)) {
    if (trail.network === undefined || trail.path !== undefined || trail.method !== undefined) {
      into.leftOut(
        at,
        '"unlimited" for something other than an address. What no rule matches is not limited.',
      )
      return
    }
    into.changed(at, `${trail.network} is exempt from every limit, not from this one alone.`)
    into.exempt(name, [trail.network], at)
    return
  }
  const requests = rate.number('requests_per_unit')
  const seconds = secondsOf(rate)
  if (seconds === undefined || requests === undefined) {
    into.leftOut(
      at,
      `a limit by ${rate.text('unit') ?? 'no unit'}. A rule counts by second, minute, hour or day.`,
    )
    return
  }
  if (!Number.isInteger(requests) || requests < 1) {
    into.leftOut(at, 'a limit of no requests. Deny an address with a rule of kind access.')
    return
  }
  if (isAboveGeneral(one, requests / seconds, holder)) {
    into.leftOut(at, 'a limit above the one without this value: both would apply, and the lower one decides.')
    return
  }
  if (seconds > 86_400) {
    into.leftOut(at, 'a limit by more than a day, which is the longest a volumetric rule counts.')
    return
  }
  const path = trail.path ?? '/**'
  into.meter(
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
 * Of descriptors with a value and one without, Envoy applies the first that matches; here every matching rule applies.
 */
function isAboveGeneral(one: Section, rate: number, holder: Section): boolean {
  if (!('value' in one.node)) return false
  return holder.list('descriptors').some(other => {
    if (other.text('key') !== one.text('key') || 'value' in other.node) return false
    const limit = other.section('rate_limit')
    const seconds = secondsOf(limit)
    return seconds !== undefined && (limit.number('requests_per_unit') ?? 0) / seconds < rate
  })
}
