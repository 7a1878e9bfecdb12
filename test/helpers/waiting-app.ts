/** An upstream whose answers wait, so that requests are in flight for as long as a test wants. */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** Answers at once, but holds back the answers of requests with `x-wait`. Its `handler` is for `startApp`. */
export class WaitingApp {
  readonly started: IncomingMessage[] = []
  /** Not answered yet, in the order they came. */
  readonly waiting: ServerResponse[] = []
  readonly #body: string

  constructor(body = 'done') {
    this.#body = body
  }

  readonly handler = (req: IncomingMessage, res: ServerResponse): void => {
    this.started.push(req)
    req.resume()
    if (req.headers['x-wait'] === undefined) res.end(this.#body)
    else this.waiting.push(res)
  }

  /** Answers all that wait. */
  finish(): void {
    for (const res of this.waiting.splice(0)) res.end(this.#body)
  }
}
