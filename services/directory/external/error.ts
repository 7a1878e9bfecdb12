/** A step of the connection failed; `status` is an HTTP status. */
export class ConnectionError extends Error {
  readonly status: 400 | 403 | 404 | 501 | 502

  constructor(status: ConnectionError['status'], message: string) {
    super(message)
    this.status = status
  }
}

/**
 * The provider did not deliver what was requested. The message never contains a token, a person's address or a name.
 */
export class ProviderError extends Error {
  /** Status of the provider's last response, if there was one. */
  readonly status: number | undefined

  constructor(message: string, status?: number) {
    super(message)
    this.status = status
  }
}

/** The consent does not cover what was requested: 403, but not the one that means "too many requests". */
export class Forbidden extends ProviderError {}
