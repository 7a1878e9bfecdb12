/** The routes as the admin port lists them: the answer to `GET /routes`. */

export interface ListedRoute {
  /** Null for every host. */
  readonly host: string | null
  /** As configured, with its method if it has one. */
  readonly path: string
  /** An upstream, shares of several, a redirect or an answer. */
  readonly to: string
  readonly strip_prefix: string | null
  readonly add_prefix: string | null
  /** Whether a credential is required. */
  readonly auth: 'optional' | 'required'
  readonly scopes: readonly string[]
  /** The origins whose pages may read it. */
  readonly cors: readonly string[]
}

export interface RouteList {
  /** How many there are; `routes` has at most 1000 of them. */
  readonly total: number
  readonly routes: readonly ListedRoute[]
}
