/** From the facts of a request to its project, upstream and rules; shared by requests and `explain`. */
import { GatewayError } from '../errors.js'
import type { Access, Ruling } from '../policy/access.js'
import type { Policy } from '../policy/policy.js'
import type { Facts, Matched, Project } from '../types.js'
import { isDenied, isExempt } from './access.js'

/** What `enter` needs of the configuration in force. */
export interface Walk {
  readonly policy: Pick<Policy, 'revision' | 'routes' | 'readFor' | 'match'>
  readonly access: Pick<Access, 'rulingOn'>
  /** Throws GatewayError('unknown-project') if unknown projects are rejected. */
  identify(facts: Facts): Project
}

/** How far a request came. */
export interface Entered {
  /** The facts as they are matched and counted for the upstream. */
  readonly facts: Facts
  readonly project?: Project | undefined
  /** Name of the upstream. */
  readonly upstream?: string | undefined
  readonly matched: readonly Matched[]
  /** The access entries that apply to the request, if any. */
  readonly ruling?: Ruling | undefined
  /** Why the request was refused. */
  readonly refused?: GatewayError
  /** True for OPTIONS to the gateway itself, which is neither forwarded nor counted. */
  readonly asksGateway?: boolean
}

/** A request that goes on to its rules, and then to an upstream. */
export type Routed = Entered & { readonly project: Project; readonly upstream: string }

export function isRouted(entered: Entered): entered is Routed {
  return entered.refused === undefined && entered.asksGateway !== true
}

const NONE: readonly Matched[] = []

/** Shared, so that a flood does not create one for each request. */
const DENIED = new GatewayError('access-denied')

/** Identifies the project, applies access entries, routes, matches. A GatewayError is returned, others are thrown. */
export function enter(facts: Facts, { policy, access, identify }: Walk): Entered {
  let project: Project | undefined
  let upstream: string | undefined
  let ruling: Ruling | undefined
  try {
    if (facts.path !== '*') project = identify(facts)
    ruling = access.rulingOn(facts, project)
    if (isDenied(ruling)) return { facts, project, ruling, matched: NONE, refused: DENIED }
    if (project === undefined) return { facts, ruling, matched: NONE, asksGateway: true }
    upstream = policy.routes.find(facts)?.value
    if (upstream === undefined) throw new GatewayError('no-route')
    const read = policy.readFor(facts, upstream, project)
    if (endsHere(facts)) return { facts: read, project, upstream, ruling, matched: NONE, asksGateway: true }
    const matched = isExempt(ruling) ? NONE : policy.match(read, project)
    return { facts: read, project, upstream, ruling, matched }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    // Applies to unknown projects too.
    if (project === undefined) ruling = access.rulingOn(facts, undefined)
    const refused = isDenied(ruling) ? DENIED : error
    return { facts, project, upstream, ruling, matched: NONE, refused }
  }
}

/**
 * True for OPTIONS with `Max-Forwards: 0`, which its recipient must answer itself (RFC 9110 section 7.6.2). `OPTIONS *`
 * also concerns the gateway itself (section 9.3.7), but is recognized before routing.
 */
function endsHere(facts: Facts): boolean {
  return facts.method === 'OPTIONS' && /^0+$/.test(facts.header('max-forwards') ?? '')
}
