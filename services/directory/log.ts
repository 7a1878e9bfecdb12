type Write = (fields: object, message: string) => void

/** Where the service writes its log; never with secrets, e-mail addresses or names in it. */
export interface Log {
  readonly debug: Write
  readonly info: Write
  readonly warn: Write
  readonly error: Write
}
