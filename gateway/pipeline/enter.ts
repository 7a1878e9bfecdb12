/** From the facts of a request to its project, its upstream and its rules: the one walk, for requests and for questions alike. */
import { GatewayError } from '../errors.js'
import type { Access, Ruling } from '../policy/access.js'
import type { Policy } from '../policy/policy.js'
import type { Facts, Matched, Project } from '../types.js'
import { isDenied, isExempt } from './access.js'

/** What a request walks through. */
export interface Walk {
  readonly policy: Pick<Policy, 'revision' | 'routes' | 'readFor' | 'match'>
  readonly access: Pick<Access, 'rulingOn'>
  /** Throws GatewayError('unknown-project') where unknown projects are rejected. */
  identify(facts: Facts): Project
}

/** How far a request came. */
export interface Entered {
  /** As they are matched and counted for the upstream. */
  readonly facts: Facts
  readonly project?: Project | undefined
  /** Name of the upstream. */
  readonly upstream?: string | undefined
  readonly matched: readonly Matched[]
  /** What access entries say of it, if anything. */
  readonly ruling?: Ruling | undefined
  /** Why it came no further. */
  readonly refused?: GatewayError
  /** True when it asks the gateway itself, and goes no further: then no rule is asked. */
  readonly asksGateway?: boolean
}

const NONE: readonly Matched[] = []

/** Shared, so that a flood creates no more of them. */
const DENIED = new GatewayError('access-denied')

/** Identifies, asks who is denied or exempt, routes and matches. Throws nothing but what is no answer. */
export function enter(facts: Facts, { policy, access, identify }: Walk): Entered {
  let project: Project | undefined
  let upstream: string | undefined
  let ruling: Ruling | undefined
  try {
    if (facts.path !== '*') project = identify(facts)
    ruling = access.rulingOn(facts, project)
    if (isDenied(ruling)) return { facts, project, ruling, matched: NONE, refused: DENIED }
    if (project === undefined) return { facts, ruling, matched: NONE, asksGateway: true }
    upstream = policy.routes.find(facts.method, facts.path)?.value
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
 * True for an OPTIONS that may be forwarded no further, which is answered by whom it has reached (RFC 9110 section 7.6.2).
 * `OPTIONS *` asks about the server itself (section 9.3.7): this one.
 */
function endsHere(facts: Facts): boolean {
  return facts.method === 'OPTIONS' && /^0+$/.test(facts.header('max-forwards') ?? '')
}
