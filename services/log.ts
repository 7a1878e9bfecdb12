type Write = (fields: object, message: string) => void

/** The log of a service; it never contains secrets, e-mail addresses or names. */
export interface ServiceLog {
  readonly debug: Write
  readonly info: Write
  readonly warn: Write
  readonly error: Write
}
