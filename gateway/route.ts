/** A route of gateway.yaml, compiled: what it asks of its requests, and what becomes of them. Types only. */
import type { Facts, Matched, Project } from './types.js'

export interface Route {
  /** Name of the upstream, or of one to which `split` leads; undefined if the gateway answers. */
  readonly upstream: string | undefined
  /** Several upstreams in place of one; absent for most routes. */
  readonly split?: Split | undefined
  /** What the gateway answers to an admitted request, instead of an upstream. */
  readonly answer?: RouteAnswer | undefined
  /** What limits its requests, in place of the policy's rules; absent for the routes of gateway.yaml. */
  readonly ownRules?: readonly Matched[] | undefined
  readonly auth: 'required' | 'optional'
  /** What a credential must allow, all of it. */
  readonly scopes: readonly string[]
  /** What changes on the way to the upstream and back; absent if nothing does. */
  readonly changes?: RouteChanges | undefined
  /** What pages of other origins may do; absent if the route does not say. */
  readonly cors?: Cors | undefined
  /** In place of this route for a preflight; present with `cors`. */
  readonly preflight?: Route | undefined
  /** True for such a route, which nobody needs a project or a credential for. */
  readonly isPreflight?: boolean | undefined
  /** Fields that change in every response, whoever gives it; absent if none does. */
  readonly responseFields?: ResponseFieldChanges | undefined
}

export interface Cors {
  /** Flat fields of a response to a request with this Origin field. */
  fieldsFor(origin: string | undefined): readonly string[]
  /** Flat; they stand beside the upstream's fields. */
  readonly added: readonly string[]
  /** Lower-case names of the upstream's fields that clients do not get. */
  readonly removed: readonly string[]
}

export interface Split {
  /** Every upstream that it leads to. */
  readonly upstreams: readonly string[]
  /** The upstream of this caller, always the same one. */
  upstreamFor(facts: Facts, project: Project): string
}

/** A redirect, a fixed response, or what the caller has left of its quotas. */
export interface RouteAnswer {
  readonly status: number
  /** Flat, with lower-case names. Throws a GatewayError if the request lacks what they say. */
  fieldsFor(facts: Facts, project: Project | undefined): string[]
  readonly body: Buffer | 'own-quota'
}

export interface RouteChanges {
  readonly path?: PathRewrite | undefined
  readonly fields?: RequestFieldChanges | undefined
  /** In place of the upstream's, in ms. */
  readonly timeouts?: RouteTimeouts | undefined
  /** Most bytes of a request body. */
  readonly maxBody?: number | undefined
}

export interface RouteTimeouts {
  readonly connectMs?: number
  readonly headMs?: number
  readonly idleMs?: number
  readonly upgradeIdleMs?: number
}

export interface RequestFieldChanges {
  /** Lower-case names of the fields that a client may not send, in any spelling. */
  readonly removed: readonly string[]
  /** The route's own fields as they are sent, each with its line end. */
  textFor(facts: Facts, project: Project | undefined): string
}

export interface ResponseFieldChanges {
  /** Lower-case names of the upstream's fields that clients do not get. */
  readonly removed: readonly string[]
  /** Flat; they replace the upstream's fields of the same names. */
  fieldsFor(facts: Facts, project: Project | undefined): readonly string[]
  /** Flat; they stand beside the upstream's fields. */
  addedFor(facts: Facts, project: Project | undefined): readonly string[]
}

/** Another path for the upstream than the one that was asked for. Both have no query. */
export interface PathRewrite {
  /** The path for the upstream, in normal form if `path` is, up to escapes of sub-delimiters. */
  forUpstream(path: string): string
  /** The path under which clients reach a path of the upstream; undefined if no request of the route leads there. */
  forClient(path: string): string | undefined
}
