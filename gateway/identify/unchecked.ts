/** What is known of a credential that could not be checked. */

/** Thrown by an identifier that cannot tell whether this credential is right. */
export class UncheckedCredential extends Error {
  readonly credential: string

  /** @param cause what is logged, in place of this error */
  constructor(credential: string, cause: unknown) {
    super('a credential could not be checked', { cause })
    this.credential = credential
  }
}

/** An identifier failed, or took too long: whether the request has a valid credential is unknown. */
export class Unchecked {
  /** Undefined if the identifier does not say. */
  readonly credential: string | undefined

  constructor(credential?: string) {
    this.credential = credential
  }
}
