/** From the facts of a request to its project, its upstream and its rules: the one walk, for requests and for questions alike. */
import { GatewayError } from '../errors.js'
import type { Policy } from '../policy/policy.js'
import type { Facts, Matched, Project } from '../types.js'

/** What a request walks through. */
export interface Walk {
  readonly policy: Pick<Policy, 'revision' | 'routes' | 'readFor' | 'match'>
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
  /** Why it came no further. */
  readonly refused?: GatewayError
  /** True when it asks the gateway itself, and goes no further: then no rule is asked. */
  readonly asksGateway?: boolean
}

const NONE: readonly Matched[] = []

/** Identifies, routes and matches. Throws nothing but what is no answer. */
export function enter(facts: Facts, { policy, identify }: Walk): Entered {
  if (facts.path === '*') return { facts, matched: NONE, asksGateway: true }
  let project: Project | undefined
  let upstream: string | undefined
  try {
    project = identify(facts)
    upstream = policy.routes.find(facts.method, facts.path)?.value
    if (upstream === undefined) throw new GatewayError('no-route')
    const read = policy.readFor(facts, upstream, project)
    if (endsHere(facts)) return { facts: read, project, upstream, matched: NONE, asksGateway: true }
    return { facts: read, project, upstream, matched: policy.match(read, project) }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { facts, project, upstream, matched: NONE, refused: error }
  }
}

/**
 * True for an OPTIONS that may be forwarded no further, which is answered by whom it has reached (RFC 9110 section 7.6.2).
 * `OPTIONS *` asks about the server itself (section 9.3.7): this one.
 */
function endsHere(facts: Facts): boolean {
  return facts.method === 'OPTIONS' && /^0+$/.test(facts.header('max-forwards') ?? '')
}
