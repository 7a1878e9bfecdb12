/** From the facts of a request to its project, upstream and rules; shared by requests and `explain`. */
import { type ErrorCode, GatewayError } from '../errors.js'
import type { Caller, Identify } from '../identify/identify.js'
import type { Access, Ruling } from '../policy/access.js'
import type { Policy } from '../policy/policy.js'
import type { Route } from '../route.js'
import type { CredentialCheck, Facts, Matched, Project } from '../types.js'
import { isDenied, isExempt } from './access.js'

/** What `enter` needs of the configuration in force. */
export interface Walk {
  readonly policy: Pick<Policy, 'revision' | 'routes' | 'readFor' | 'match'>
  readonly access: Pick<Access, 'rulingOn'>
  readonly identify: Identify
  /** How clients learn which credentials are accepted: the value of WWW-Authenticate, without parameters. */
  readonly challenges: readonly string[]
}

/** How far a request came. */
export interface Entered {
  /** The facts as they are matched and counted for the upstream. */
  readonly facts: Facts
  readonly project?: Project | undefined
  /** Undefined for a request to the gateway itself. */
  readonly caller?: Caller | undefined
  /** Undefined if it is not known, or the request is refused before it counts. */
  readonly route?: Route | undefined
  /** Name of the upstream; undefined if the gateway answers. */
  readonly upstream?: string | undefined
  readonly matched: readonly Matched[]
  /** The access entries that apply to the request, if any. */
  readonly ruling?: Ruling | undefined
  /** Why the request was refused. */
  readonly refused?: GatewayError
  /** True for OPTIONS to the gateway itself, and for a preflight of nobody, which are neither forwarded nor counted. */
  readonly asksGateway?: boolean
}

/** A request that goes on to its rules, and then to an upstream or to what its route answers. */
export type Routed = Entered & { readonly project: Project; readonly route: Route }

export function isRouted(entered: Entered): entered is Routed {
  return entered.refused === undefined && entered.asksGateway !== true
}

const NONE: readonly Matched[] = []

/** Shared, so that a flood does not create one for each request. */
const DENIED = new GatewayError('access-denied')

/**
 * Finds the route, identifies the project, applies access entries, matches. A GatewayError is returned, others are thrown.
 * A promise only if an identifier had to ask somebody.
 */
export function enter(facts: Facts, walk: Walk): Entered | Promise<Entered> {
  if (facts.path === '*') return enterSelf(facts, walk)
  const route = walk.policy.routes.routeFor(facts)
  const caller = walk.identify(facts, route?.auth === 'required')
  if (caller instanceof Promise) return caller.then(late => enterAs(late, facts, route, walk))
  return enterAs(caller, facts, route, walk)
}

function enterAs(caller: Caller, facts: Facts, route: Route | undefined, walk: Walk): Entered {
  const { policy, access } = walk
  const { project } = caller
  const ruling = access.rulingOn(facts, project)
  const known = { facts, project, caller, ruling, route, upstream: soleUpstream(route), matched: NONE }
  if (isDenied(ruling)) return { ...known, upstream: undefined, refused: DENIED }
  const lacking = route && lackingCredential(caller, route, walk.challenges)
  if (lacking !== undefined) return { ...known, refused: lacking }
  // A preflight has no credential, so its project may only be unknown.
  if (project === undefined && route?.isPreflight) return { ...known, asksGateway: true }
  if (project === undefined)
    return { ...known, upstream: undefined, refused: new GatewayError('unknown-project') }
  if (route === undefined) return { ...known, refused: new GatewayError('no-route') }
  try {
    const read = policy.readFor(facts, route.upstream, project)
    if (endsHere(facts)) return { ...known, facts: read, asksGateway: true }
    const upstream = route.split === undefined ? route.upstream : route.split.upstreamFor(facts, project)
    const matched = isExempt(ruling) ? NONE : (route.ownRules ?? policy.match(read, project))
    return { ...known, upstream, facts: read, matched }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { ...known, refused: error }
  }
}

/** Undefined while a split has not chosen one. */
function soleUpstream(route: Route | undefined): string | undefined {
  return route?.split === undefined ? route?.upstream : undefined
}

/** `OPTIONS *`: nobody is counted for it. */
function enterSelf(facts: Facts, { access }: Walk): Entered {
  const ruling = access.rulingOn(facts, undefined)
  if (isDenied(ruling)) return { facts, ruling, matched: NONE, refused: DENIED }
  return { facts, ruling, matched: NONE, asksGateway: true }
}

/** RFC 6750 section 3.1 and RFC 9110 section 11.6.1. */
function challengeFields(
  challenges: readonly string[],
  credential: CredentialCheck,
  scopes: readonly string[],
): string[] {
  if (credential === 'unchecked') return []
  return challenges.flatMap(challenge => {
    if (challenge !== 'Bearer' || credential === 'none') return [CHALLENGE, challenge]
    if (credential === 'invalid') return [CHALLENGE, 'Bearer error="invalid_token"']
    return [CHALLENGE, `Bearer error="insufficient_scope", scope="${scopes.join(' ')}"`]
  })
}

const CHALLENGE = 'WWW-Authenticate'

const LACKING: Readonly<Record<Exclude<CredentialCheck, 'verified'>, ErrorCode>> = {
  none: 'credential-missing',
  invalid: 'credential-invalid',
  unchecked: 'credential-unchecked',
}

/** Why the caller may not use the route; undefined if it may. Who is wrong is not told what is wrong. */
function lackingCredential(
  { project, credential }: Caller,
  { auth, scopes }: Route,
  challenges: readonly string[],
): GatewayError | undefined {
  if (auth !== 'required') return undefined
  if (credential !== 'verified') {
    return new GatewayError(LACKING[credential], { fields: challengeFields(challenges, credential, scopes) })
  }
  if (scopes.every(scope => project?.scopes?.includes(scope))) return undefined
  return new GatewayError('insufficient-scope', { fields: challengeFields(challenges, credential, scopes) })
}

/**
 * True for OPTIONS with `Max-Forwards: 0`, which its recipient must answer itself (RFC 9110 section 7.6.2). `OPTIONS *`
 * also concerns the gateway itself (section 9.3.7), but is recognized before routing.
 */
function endsHere(facts: Facts): boolean {
  return facts.method === 'OPTIONS' && /^0+$/.test(facts.header('max-forwards') ?? '')
}
