import { HttpError } from '../../http/errors.js'

/** A step of the connection failed. */
export class ConnectionFlowError extends HttpError {}

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
