/** Routes of an imported configuration: where they lead, and what changes on the way. */
import type { FaultHere } from '../../gateway/policy/fault.js'
import { compileAnswer } from '../../gateway/policy/route-answer.js'
import type { OpenPlace } from './doors.js'
import type { FieldChanges } from './fields.js'
import { faultIn } from './findings.js'
import type { Migration } from './migration.js'
import { isBelow, type PlacePath } from './places.js'
import { type ImportedSettings, settingsText } from './upstreams.js'
import { From } from './yaml.js'

/** What a route says besides its host and path. */
export interface RouteParts extends Rewrite {
  /** Absent where the gateway answers. */
  readonly upstream?: string
  readonly redirect?: { readonly to: string; readonly status: number }
  readonly respond?: { readonly status: number; readonly type?: string; readonly body?: string }
  readonly headers?: { readonly request?: FieldChanges; readonly response?: FieldChanges }
  readonly settings?: ImportedSettings
}

/** How the path changes for the upstream. */
export interface Rewrite {
  readonly stripPrefix?: string
  readonly addPrefix?: string
}

type Answer = Pick<RouteParts, 'redirect' | 'respond'>

/** What the gateway answers; undefined when gateway.yaml cannot have it, such as a target on a host that clients choose. */
export function answering(answer: Answer): Answer | undefined {
  if (faultIn('route', { path: '/', ...answer }) !== undefined) return undefined
  const faults: FaultHere[] = []
  compileAnswer({ redirect: answer.redirect }, faults)
  return faults.length === 0 ? answer : undefined
}

/** Whole segments that a rewrite may have: neither escapes nor what is a pattern or a dot segment here. */
const SEGMENTS = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~@:=+,-]+)*\/?$/

/**
 * The rewrite by which paths of a place that begin with its own path begin with another one; undefined when no rewrite of
 * whole segments does the same.
 */
export function rewriteOf({ kind, path }: PlacePath, target: string): Rewrite | undefined {
  if (path === target) return {}
  const isAligned = path.endsWith('/') === target.endsWith('/') || (kind === 'exact' && target === '/')
  if (!isAligned || !SEGMENTS.test(path) || !SEGMENTS.test(target)) return undefined
  const [stripped, added] = [path, target].map(text => text.replace(/\/$/, ''))
  return { ...(stripped && { stripPrefix: stripped }), ...(added && { addPrefix: added }) }
}

/** The routes to open places, each once. What all routes of an upstream have in common becomes the upstream's. */
export function routesTo(open: readonly OpenPlace[], into: Migration): From[] {
  const shared = sharedSettings(open)
  for (const [upstream, settings] of shared) into.upstreams.set(upstream, settings)
  const chosen = new Map<string, { readonly entry: object; readonly one: OpenPlace }>()
  for (const one of open) {
    const { settings = {}, ...parts } = one.route
    const whole = { ...parts, ...(shared.has(parts.upstream ?? '') ? {} : settingsText(settings)) }
    for (const host of one.hosts.length === 0 ? [undefined] : one.hosts) {
      for (const path of one.patterns) {
        const key = `${host ?? ''} ${path}`
        const entry = { ...(host !== undefined && { host }), path, ...whole }
        const present = chosen.get(key)
        // Two places of one pattern: the other gateway gave most of its requests to the one that it preferred.
        const isFirst = present === undefined || isBelow(present.one.rank, one.rank)
        if (isFirst) chosen.set(key, { entry, one })
        if (present === undefined || JSON.stringify(present.entry) === JSON.stringify(entry)) continue
        const { at, route } = isFirst ? present.one : one
        into.leftOut(at, `the route of ${path}${toText(route)}. There is another one for that path.`)
      }
    }
  }
  return [...chosen.values()].map(({ entry, one }) => new From(into.placeOf(one.at), entry))
}

const toText = ({ upstream, redirect }: RouteParts): string => {
  const to = upstream ?? redirect?.to
  return to === undefined ? '' : ` to ${to}`
}

/** The limits and timeouts of upstreams whose routes all have the same. */
function sharedSettings(open: readonly OpenPlace[]): ReadonlyMap<string, ImportedSettings> {
  const shared = new Map<string, ImportedSettings>()
  const different = new Set<string>()
  for (const { upstream, settings = {} } of open.map(({ route }) => route)) {
    if (upstream === undefined) continue
    const present = shared.get(upstream) ?? settings
    shared.set(upstream, present)
    if (JSON.stringify(present) !== JSON.stringify(settings)) different.add(upstream)
  }
  return new Map([...shared].filter(([upstream]) => !different.has(upstream)))
}
