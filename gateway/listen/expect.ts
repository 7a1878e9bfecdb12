import type { IncomingMessage } from 'node:http'

/** What is needed of an answer to send a 100 before it. */
interface Continuable {
  readonly headersSent: boolean
  writeContinue(): void
}

/** True for the one expectation there is (RFC 9110 section 10.1.1). */
export function expectsContinue({ headers }: IncomingMessage): boolean {
  return headers.expect?.toLowerCase() === '100-continue'
}

/** Sends the 100 that a client waits for, when somebody wants the body: a refusal comes instead of it. */
export function continueWhenWanted(req: IncomingMessage, res: Continuable): void {
  if (!expectsContinue(req)) return
  req.once('resume', () => {
    if (!res.headersSent) res.writeContinue()
  })
}
