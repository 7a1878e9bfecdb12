import type { ErrorCode } from '../errors.js'
import type { ClientConnection } from '../http1/client-connection.js'
import type { Timed } from '../http1/deadlines.js'
import type { Framing, ParsedResponse } from '../http1/message.js'
import type { ConnectionFault, ResponseHandler } from '../http1/response-handler.js'
import type { Stalled, Stalls } from '../http1/stalls.js'
import type { Fields, IncomingBody, ResponseWatcher } from '../message.js'
import { Attempts } from './attempts.js'
import type { Occupant } from './backend-queue.js'
import type { Backends } from './backends.js'
import { causeOf, codeOf, isSafe } from './failure.js'
import { answerFields, interimFields, upstreamRequestFields } from './headers.js'
import { Relay } from './relay.js'
import { RequestFields } from './request-fields.js'
import type { Exchange, Transport, UpstreamSettings } from './transport.js'
import { Upload } from './upload.js'

const NEVER = Number.POSITIVE_INFINITY
const BODYLESS: Framing = { kind: 'none', bytes: 0 }
const CHUNKED: Framing = { kind: 'chunked', bytes: 0 }

/** Forwards plain HTTP requests, with one object for each request that connects its client and its upstream. */
export function createHttpTransport(
  settings: UpstreamSettings,
  backends: Backends,
  stalls: Stalls,
): Transport {
  const fields = new RequestFields(settings)
  return {
    forward(exchange) {
      new Forwarding(exchange, settings, fields, backends, stalls).start()
    },
  }
}

/** One request in progress. */
class Forwarding implements ResponseHandler, ResponseWatcher, Occupant, Stalled, Timed {
  /** When the wait for a place at the backend is given up. */
  deadline = NEVER
  readonly #exchange: Exchange
  readonly #settings: UpstreamSettings
  readonly #backends: Backends
  readonly #stalls: Stalls
  readonly #attempts: Attempts
  readonly #framing: Framing
  readonly #head: string
  readonly #upload: Upload | undefined
  /** Set once the request is being sent. */
  #connection: ClientConnection | undefined
  #reused = false
  #resent = false
  #relay: Relay | undefined
  #isQueued = false
  /** The client has left, or has got the response of a failed request. */
  #clientLeft = false
  #ended = false

  constructor(
    exchange: Exchange,
    settings: UpstreamSettings,
    fields: RequestFields,
    backends: Backends,
    stalls: Stalls,
  ) {
    const { req, facts, project, body = req.body } = exchange
    this.#exchange = exchange
    this.#settings = settings
    this.#backends = backends
    this.#stalls = stalls
    this.#attempts = new Attempts(backends, settings.timeouts.headMs, this)
    this.#framing = framingOf(body)
    this.#head =
      `${req.method} ${facts.path}${facts.query} HTTP/1.1\r\n` +
      upstreamRequestFields(req, facts, project, fields, settings) +
      framingFields(this.#framing, req.fields)
    if (body === undefined) return
    const events = {
      onFailure: (code: ErrorCode) => this.#giveUp(code),
      onBlocked: () => stalls.begin(this),
    }
    this.#upload = new Upload(body, req.fields, fields, settings, backends.deadlines, events)
  }

  start(): void {
    const { res } = this.#exchange
    const { maxBody = NEVER } = this.#settings
    res.watch(this)
    if (res.closed) this.#finish()
    else if (this.#framing.bytes <= maxBody) this.#attempt()
    else {
      this.#giveUp('body-too-large')
      this.#finish()
    }
  }

  #attempt(): void {
    this.#connection = undefined
    const entry = this.#attempts.enter()
    this.#exchange.onAttempt(this.#attempts.backend.address)
    if (entry === 'admitted') this.go()
    else if (entry === 'waiting') {
      this.#isQueued = true
      this.deadline = this.#backends.deadlines.now() + this.#settings.timeouts.connectMs
      this.#backends.deadlines.add(this)
    } else {
      this.#giveUp('overloaded', 'too many requests wait for this address')
      this.#finish()
    }
  }

  get client(): string {
    return this.#exchange.facts.network
  }

  get waitsSince(): number | undefined {
    if (this.#clientLeft) return undefined
    return this.#relay?.waitsSince ?? this.#upload?.waitsSince
  }

  giveWay(): void {
    if (this.#isQueued) this.#giveUp('overloaded', 'too many requests wait for this address')
    else this.#giveUp('overloaded', 'it waited for its client while others needed its place')
  }

  /** The request has waited too long for a place. */
  onDeadline(): void {
    this.#giveUp(
      'overloaded',
      `no free connection to this address within ${this.#settings.timeouts.connectMs} ms`,
    )
  }

  /** The request has a place at the backend. */
  go(): void {
    this.#leaveQueue()
    if (this.#clientLeft) this.#finish()
    else this.#attempts.backend.pool.take(this)
  }

  onConnection(connection: ClientConnection): void {
    if (this.#clientLeft) {
      connection.release()
      this.#finish()
      return
    }
    this.#connection = connection
    this.#reused = connection.requests > 0
    connection.ask(this, this.#exchange.req.method, this.#head, this.#framing)
    this.#upload?.start(connection)
  }

  onSendable(): void {
    this.#stalls.end(this)
    this.#upload?.onSendable()
  }

  /** An interim response, such as 103 (RFC 9110 section 15.2). */
  onInterim(status: number, fields: Fields): void {
    if (this.#clientLeft) return
    const { res, answerFields: own, removedFields } = this.#exchange
    res.sendInterim(status, interimFields(status, fields, own, removedFields))
  }

  onHead({ status, reason, fields }: ParsedResponse): void {
    this.#attempts.backend.answered()
    this.#exchange.onAnswer(status, fields)
    if (this.#clientLeft) return
    const { req, res, answerFields: own, removedFields } = this.#exchange
    // The upstream responded early. The rest of the upload must not be read as the next request.
    if (req.body?.complete === false) res.closeAfter()
    const passed = answerFields(status, fields, own, removedFields)
    this.#relay = new Relay(res, { status, reason, fields: passed }, this.#settings.timeouts.idleMs)
  }

  onData(chunk: Buffer): void {
    if (this.#clientLeft) {
      // Do not discard an endless stream for ever: once the slot is released, there is no reason to read on.
      if (!this.#exchange.keepUpstream) this.#withdraw()
    } else if (this.#relay?.write(chunk) === false) this.#awaitReader()
  }

  onReadEnd(): void {
    if (!this.#clientLeft && this.#relay?.flush() === false) this.#awaitReader()
  }

  #awaitReader(): void {
    this.#connection?.pause()
    this.#stalls.begin(this)
  }

  onEnd(trailers: readonly string[]): void {
    const relay = this.#clientLeft ? undefined : this.#relay
    this.#finish()
    relay?.end(trailers)
  }

  onMostStalled(): void {
    this.#giveUp('overloaded', 'it waited for a side that did not read, and so did too many others')
  }

  onFault(fault: ConnectionFault, error: Error, responseBegan: boolean): void {
    if (this.#ended) return
    this.#judgeBackend(fault, error, responseBegan)
    if (this.#triesAgain(fault, responseBegan)) return
    const clientLeft = this.#clientLeft
    this.#finish()
    if (clientLeft) return
    if (this.#relay?.begun) {
      this.#exchange.onCut(causeOf(error))
      this.#relay.cut()
    } else this.#exchange.fail(codeOf(fault, responseBegan), causeOf(error))
  }

  /** Counts failures against the backend. A failed connect has already been reported to it. */
  #judgeBackend(fault: ConnectionFault, error: Error, responseBegan: boolean): void {
    if (responseBegan) return
    // Until the client has sent everything, the silence may be its own fault.
    const silent = fault === 'silent' && this.#upload?.complete !== false
    if (silent || (fault === 'gone' && !this.#reused)) this.#attempts.backend.failed(error)
  }

  /** A request that was never sent may go to another backend; one that was sent is sent once more, if that is safe. */
  #triesAgain(fault: ConnectionFault, responseBegan: boolean): boolean {
    if (responseBegan || this.#clientLeft) return false
    if (fault === 'no-connection') return this.#movesOn()
    if (this.#resent || this.#upload !== undefined || !isSafe(this.#exchange.req.method)) return false
    if (fault !== 'gone') return false
    this.#resent = true
    if (!this.#reused) return this.#movesOn()
    // The upstream has closed the idle connection, which is not a failure of the backend.
    this.#connection = undefined
    this.#attempts.backend.pool.takeNew(this)
    return true
  }

  #movesOn(): boolean {
    if (!this.#attempts.moveOn()) return false
    this.#attempt()
    return true
  }

  /** The client can take more of the response. */
  onDrain(): void {
    this.#stalls.end(this)
    this.#relay?.onDrain()
    this.#connection?.resume()
  }

  /** The response has been sent, or the client has left. */
  onClose(): void {
    this.#stalls.end(this)
    if (this.#ended || this.#clientLeft) return
    this.#clientLeft = true
    const sent = this.#upload === undefined || this.#upload.complete
    if (this.#exchange.keepUpstream && sent && this.#connection !== undefined) this.#connection.resume()
    else this.#withdraw()
  }

  /** Gives up on the request. The client gets an error, or its response is cut if the upstream has begun to respond. */
  #giveUp(code: ErrorCode, cause?: string): void {
    if (this.#ended || this.#clientLeft) return
    this.#clientLeft = true
    const { req, res } = this.#exchange
    if (this.#relay !== undefined) {
      if (cause !== undefined) this.#exchange.onCut(cause)
      this.#relay.cut()
    } else {
      // The rest of the upload must not be read as the next request.
      if (req.body?.complete === false) res.closeAfter()
      this.#exchange.fail(code, cause)
    }
    this.#withdraw()
  }

  /** Leaves the upstream, or the queue for it. While a connection is being opened, its outcome ends the request. */
  #withdraw(): void {
    this.#connection?.abort()
    if (this.#connection !== undefined || this.#attempts.stopWaiting()) this.#finish()
  }

  #finish(): void {
    if (this.#ended) return
    this.#ended = true
    this.#stalls.end(this)
    this.#upload?.stop()
    this.#leaveQueue()
    this.#attempts.leave()
    this.#exchange.onUpstreamEnd()
  }

  #leaveQueue(): void {
    if (!this.#isQueued) return
    this.#isQueued = false
    this.#backends.deadlines.delete(this)
  }
}

function framingOf(body: IncomingBody | undefined): Framing {
  if (body === undefined) return BODYLESS
  return body.length === undefined ? CHUNKED : { kind: 'length', bytes: body.length }
}

/** The framing field, if any, and the empty line. */
function framingFields({ kind, bytes }: Framing, asked: Fields): string {
  if (kind === 'chunked') return 'Transfer-Encoding: chunked\r\n\r\n'
  return kind === 'length' || asked.has('content-length') ? `Content-Length: ${bytes}\r\n\r\n` : '\r\n'
}
