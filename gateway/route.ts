/** A route of gateway.yaml, compiled: what it asks of its requests, and what becomes of them. Types only. */

export interface Route {
  /** Name of the upstream. */
  readonly upstream: string
  readonly auth: 'required' | 'optional'
  /** What a credential must allow, all of it. */
  readonly scopes: readonly string[]
  /** What changes on the way to the upstream and back; absent if nothing does. */
  readonly changes?: RouteChanges | undefined
}

export interface RouteChanges {
  readonly path?: PathRewrite | undefined
}

/** Another path for the upstream than the one that was asked for. Both have no query. */
export interface PathRewrite {
  /** The path for the upstream, in normal form if `path` is, up to escapes of sub-delimiters. */
  forUpstream(path: string): string
  /** The path under which clients reach a path of the upstream; undefined if no request of the route leads there. */
  forClient(path: string): string | undefined
}
