import type { ErrorCode } from '../errors.js'
import type { Deadlines, Timed } from '../http1/deadlines.js'
import { TransferRate } from '../http1/transfer-rate.js'
import type { BodyReader, Fields, IncomingBody } from '../message.js'
import type { OutgoingRequest } from '../outgoing-request.js'
import type { FieldFates } from './request-fields.js'
import { announcedTrailers } from './trailers.js'
import type { UpstreamSettings } from './transport.js'

const NEVER = Number.POSITIVE_INFINITY
/** The most content that is kept to be sent again: a message of gRPC, or a form. */
const MOST_KEPT = 16_384

export interface UploadEvents {
  /** The client is too slow, sends more than the upstream takes, or breaks off. */
  onFailure(code: ErrorCode): void
  /** The upstream must read first. */
  onBlocked(): void
}

/** Passes a client's request body on to the upstream. */
export class Upload implements BodyReader, Timed {
  /** Set only while the upstream could take more than the client sends. */
  deadline = NEVER
  /** Some of the content was taken. */
  begun = false
  readonly #body: IncomingBody
  readonly #head: Fields
  readonly #fields: FieldFates
  readonly #deadlines: Deadlines
  readonly #rate: TransferRate
  readonly #events: UploadEvents
  /** Bytes left of the upstream's `maxBody`. */
  #bytesLeft: number
  /** All content that was taken, for an upstream that may refuse a request which it has not looked at. */
  #kept: Buffer[] | undefined
  #keptBytes = 0
  /** Undefined before the start and after the end of the upload. */
  #connection: OutgoingRequest | undefined
  /** Set at the end of the body. A body without content can so be sent again. */
  #trailers: readonly string[] | undefined

  constructor(
    body: IncomingBody,
    head: Fields,
    fields: FieldFates,
    {
      timeouts,
      maxBody = NEVER,
      protocol = 'http1',
    }: Pick<UpstreamSettings, 'timeouts' | 'maxBody' | 'protocol'>,
    deadlines: Deadlines,
    events: UploadEvents,
  ) {
    this.#body = body
    this.#head = head
    this.#fields = fields
    this.#deadlines = deadlines
    this.#rate = new TransferRate(timeouts.idleMs)
    this.#bytesLeft = maxBody
    this.#events = events
    // HTTP/1.1 has no way to say that a request was not looked at.
    if (protocol !== 'http1') this.#kept = []
  }

  /** True if nothing is lost of what was taken, so that it can be sent to another connection. */
  get canRestart(): boolean {
    return !this.begun || this.#kept !== undefined
  }

  /** True when the client has sent the whole body. */
  get complete(): boolean {
    return this.#body.complete
  }

  /** Since when the client is waited for; undefined while it is not. */
  get waitsSince(): number | undefined {
    return this.#connection === undefined ? undefined : this.#rate.waitsSince
  }

  /**
   * Starts to read the body, which makes the listener send a 100 to a client that expects one. While `canRestart`, it can
   * be stopped and started again.
   */
  start(connection: OutgoingRequest): void {
    this.#connection = connection
    // What came of the body between two connections is in it.
    if (this.#bytesLeft < 0) {
      this.#events.onFailure('body-too-large')
      return
    }
    let isBlocked = false
    for (const chunk of this.#kept ?? []) isBlocked = !connection.send(chunk)
    if (this.#trailers !== undefined) this.#end(this.#trailers)
    else {
      this.#deadlines.add(this)
      this.#awaitClient()
      this.#body.read(this)
      if (isBlocked) this.#block()
    }
    // Body bytes that have already arrived are delivered in this tick, and so are sent together with the head.
    process.nextTick(flush, connection)
  }

  /** Stops reading the body. */
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
    this.begun = true
    this.#bytesLeft -= chunk.length
    this.#keep(chunk)
    if (this.#connection === undefined) return
    this.#rate.moved(chunk.length, this.#deadlines.now())
    if (this.#bytesLeft < 0) this.#events.onFailure('body-too-large')
    else if (this.#connection.send(chunk)) this.#awaitClient()
    else this.#block()
  }

  /** The response has come: nothing is sent again. */
  onAnswered(): void {
    this.#kept = undefined
  }

  /** A copy, because the bytes may be of a buffer that is read into again. */
  #keep(chunk: Buffer): void {
    if (this.#kept === undefined) return
    this.#keptBytes += chunk.length
    if (this.#keptBytes <= MOST_KEPT) this.#kept.push(Buffer.from(chunk))
    else this.#kept = undefined
  }

  #block(): void {
    this.deadline = NEVER
    this.#rate.rest(this.#deadlines.now())
    this.#body.pause()
    this.#events.onBlocked()
  }

  onEnd(trailers: readonly string[]): void {
    this.#trailers = announcedTrailers(trailers, this.#head, this.#fields)
    this.#end(this.#trailers)
  }

  onAbort(): void {
    if (this.#connection === undefined) return
    this.#rest()
    this.#events.onFailure('bad-framing')
  }

  onDeadline(): void {
    this.#events.onFailure('request-timeout')
  }

  #end(trailers: readonly string[]): void {
    const connection = this.#connection
    this.#rest()
    connection?.finish(trailers)
  }

  #awaitClient(): void {
    this.deadline = this.#rate.wait(this.#deadlines.now())
  }

  #rest(): void {
    this.#connection = undefined
    this.#deadlines.delete(this)
  }
}

function flush(connection: OutgoingRequest): void {
  connection.flush()
}
