/** From the facts of a request to its project, its upstream and its rules: the one walk, for requests and for questions alike. */
import { GatewayError } from '../errors.js'
import type { Policy } from '../policy/policy.js'
import type { Facts, Matched, Project } from '../types.js'

/** What a request walks through. */
export interface Walk {
  readonly policy: Pick<Policy, 'revision' | 'routes' | 'match'>
  /** Throws GatewayError('unknown-project') where unknown projects are rejected. */
  identify(facts: Facts): Project
}

/** How far a request came. */
export interface Entered {
  readonly project?: Project
  /** Name of the upstream. */
  readonly upstream?: string
  readonly matched: readonly Matched[]
  /** Why it came no further. */
  readonly refused?: GatewayError
  /** True when it asks the gateway itself, and goes no further: then no rule is asked. */
  readonly asksGateway?: boolean
}

const NONE: readonly Matched[] = []

/** Identifies, routes and matches. Throws nothing but what is no answer. */
export function enter(facts: Facts, { policy, identify }: Walk): Entered {
  if (facts.path === '*') return { matched: NONE, asksGateway: true }
  let project: Project
  try {
    project = identify(facts)
  } catch (error) {
    if (error instanceof GatewayError) return { matched: NONE, refused: error }
    throw error
  }
  const upstream = policy.routes.find(facts.method, facts.path)?.value
  if (upstream === undefined) return { project, matched: NONE, refused: new GatewayError('no-route') }
  if (endsHere(facts)) return { project, upstream, matched: NONE, asksGateway: true }
  return { project, upstream, matched: policy.match(facts, project) }
}

/**
 * True for an OPTIONS that may be forwarded no further, which is answered by whom it has reached (RFC 9110 section 7.6.2).
 * `OPTIONS *` asks about the server itself (section 9.3.7): this one.
 */
function endsHere(facts: Facts): boolean {
  return facts.method === 'OPTIONS' && /^0+$/.test(facts.header('max-forwards') ?? '')
}
