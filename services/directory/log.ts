type Write = (fields: object, message: string) => void

/** The service's log; it never contains secrets, e-mail addresses or names. */
export interface Log {
  readonly debug: Write
  readonly info: Write
  readonly warn: Write
  readonly error: Write
}
