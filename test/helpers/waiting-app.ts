/** An upstream that delays its responses, so that requests are in flight for as long as a test wants. */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** Responds at once, except to requests with `x-wait`. Its `handler` is for `startApp`. */
export class WaitingApp {
  readonly started: IncomingMessage[] = []
  /** Delayed responses, in the order of their requests. */
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

  /** Sends all delayed responses. */
  finish(): void {
    for (const res of this.waiting.splice(0)) res.end(this.#body)
  }
}
