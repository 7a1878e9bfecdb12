/** The API keys as the admin port lists them: the answer to `GET /keys`. */

/** A key as the admin port reports it. Times are ISO 8601. */
export interface ListedKey {
  readonly id: string
  readonly project: string
  readonly name: string
  /** Its beginning. */
  readonly prefix: string
  readonly state: 'active' | 'expired' | 'revoked'
  readonly scopes: readonly string[]
  readonly created: string
  readonly expires: string | null
  readonly revoked: string | null
  /** Null if not since the gateway started; with Redis, of all gateways that share it. */
  readonly last_used: string | null
}

export interface KeyList {
  /** The file with the keys; null if gateway.yaml names none. */
  readonly file: string | null
  /** Why the file cannot be read; null if it can. */
  readonly trouble: string | null
  /** How many there are; `keys` has at most 1000 of them. */
  readonly total: number
  readonly keys: readonly ListedKey[]
}
