/** A step of the connection that cannot be done; `status` is that of HTTP. */
export class ConnectionError extends Error {
  readonly status: 400 | 403 | 404 | 501 | 502

  constructor(status: ConnectionError['status'], message: string) {
    super(message)
    this.status = status
  }
}

/** The provider did not give what was asked of it. The message never holds a token, an address of a person or a name. */
export class ProviderError extends Error {
  /** Of its last answer, if there was one. */
  readonly status: number | undefined

  constructor(message: string, status?: number) {
    super(message)
    this.status = status
  }
}
