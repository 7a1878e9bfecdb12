import type { ErrorCode } from '../errors.js'
import type { ClientConnection } from '../http1/client-connection.js'
import type { Deadlines, Timed } from '../http1/deadlines.js'
import type { BodyReader, Fields, IncomingBody } from '../message.js'
import { announcedTrailers } from './trailers.js'
import type { UpstreamSettings } from './transport.js'

const NEVER = Number.POSITIVE_INFINITY

/** A client's body on its way to an upstream. */
export class Upload implements BodyReader, Timed {
  /** Set only while the upstream could take more than the client sends. */
  deadline = NEVER
  readonly #body: IncomingBody
  readonly #head: Fields
  readonly #deadlines: Deadlines
  readonly #idleMs: number
  readonly #onFailure: (code: ErrorCode) => void
  /** Bytes that may still come. */
  #room: number
  /** Undefined before the start, and once it is stopped. */
  #connection: ClientConnection | undefined

  /** Calls `onFailure` when `body` is waited for and nothing comes for too long, or more than the upstream takes. */
  constructor(
    body: IncomingBody,
    head: Fields,
    { timeouts, maxBody = NEVER }: Pick<UpstreamSettings, 'timeouts' | 'maxBody'>,
    deadlines: Deadlines,
    onFailure: (code: ErrorCode) => void,
  ) {
    this.#body = body
    this.#head = head
    this.#deadlines = deadlines
    this.#idleMs = timeouts.idleMs
    this.#room = maxBody
    this.#onFailure = onFailure
  }

  /** True when the client has sent the whole body. */
  get complete(): boolean {
    return this.#body.complete
  }

  /** Reads the body, from now on: a client that expects a 100 gets it when its body begins to flow. */
  start(connection: ClientConnection): void {
    this.#connection = connection
    this.#deadlines.add(this)
    this.#awaitClient()
    this.#body.read(this)
    // What has come of the body already is handed over within this turn, and leaves together with the head.
    process.nextTick(flush, connection)
  }

  /** The rest is not read. */
  stop(): void {
    if (this.#connection === undefined) return
    this.#rest()
    this.#body.pause()
  }

  /** The upstream can take more. */
  onSendable(): void {
    if (this.#connection === undefined) return
    this.#awaitClient()
    this.#body.resume()
  }

  onData(chunk: Buffer): void {
    if (this.#connection === undefined) return
    this.#room -= chunk.length
    if (this.#room < 0) this.#onFailure('body-too-large')
    else if (this.#connection.send(chunk)) this.#awaitClient()
    else {
      this.deadline = NEVER
      this.#body.pause()
    }
  }

  onEnd(trailers: readonly string[]): void {
    const connection = this.#connection
    this.#rest()
    connection?.finish(announcedTrailers(trailers, this.#head))
  }

  onAbort(): void {
    if (this.#connection === undefined) return
    this.#rest()
    this.#onFailure('bad-framing')
  }

  onDeadline(): void {
    this.#onFailure('request-timeout')
  }

  #awaitClient(): void {
    this.deadline = this.#deadlines.now() + this.#idleMs
  }

  #rest(): void {
    this.#connection = undefined
    this.#deadlines.delete(this)
  }
}

function flush(connection: ClientConnection): void {
  connection.flush()
}
