import type { RetryReason } from '../../config/words/words.js'
import type { ErrorCode } from '../errors.js'
import type { Stalled, Stalls } from '../http1/stalls.js'
import type { Fields, ResponseWatcher } from '../message.js'
import type { ConnectionFault, OutgoingRequest, ResponseHandler, ResponseHead } from '../outgoing-request.js'
import { type Attempting, Attempts } from './attempts.js'
import type { Backends } from './backends.js'
import { type CallDeadline, callDeadline } from './call-deadline.js'
import { causeOf, codeOf } from './failure.js'
import { type FramedRequest, framedRequest } from './headers.js'
import { Relay } from './relay.js'
import { RequestFields } from './request-fields.js'
import { exchangeAnswerFields, exchangeTrailers, interimFields } from './response-fields.js'
import { RouteSettings } from './route-settings.js'
import { Sendings } from './sendings.js'
import type { Exchange, Timeouts, Transport, UpstreamSettings } from './transport.js'
import { Upload } from './upload.js'

const NEVER = Number.POSITIVE_INFINITY
const TOO_MANY_WAIT = 'too many requests wait for this address'

/** Forwards plain HTTP requests, with one object for each request that connects its client and its upstream. */
export function createHttpTransport(
  settings: UpstreamSettings,
  backends: Backends,
  stalls: Stalls,
): Transport {
  const fields = new RequestFields(settings)
  const byRoute = new RouteSettings(settings)
  return {
    forward(exchange) {
      const own = byRoute.for(exchange.changes)
      new Forwarding(exchange, own, fields, backends, stalls).start()
    },
  }
}

/** One request in progress. */
class Forwarding implements ResponseHandler, ResponseWatcher, Attempting, Stalled {
  readonly #exchange: Exchange
  readonly #settings: UpstreamSettings
  readonly #backends: Backends
  readonly #stalls: Stalls
  readonly #sendings: Sendings
  readonly #attempts: Attempts
  readonly #request: FramedRequest
  readonly #upload: Upload | undefined
  /** Set once the request is being sent. */
  #connection: OutgoingRequest | undefined
  #reused = false
  /** A connection that had been idle turned out to be closed: the next one must not have been idle. */
  #needsNew = false
  /** The final head of a response has come. */
  #hasHead = false
  #relay: Relay | undefined
  #callDeadline: CallDeadline | undefined
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
    const { req, body = req.body, changes } = exchange
    const passing = fields.changedBy(changes?.fields)
    this.#exchange = exchange
    this.#settings = settings
    this.#backends = backends
    this.#stalls = stalls
    this.#attempts = new Attempts(backends, settings.timeouts, this)
    this.#request = framedRequest(exchange, passing, settings)
    const events = {
      onFailure: (code: ErrorCode) => this.#giveUp(code),
      onBlocked: () => stalls.begin(this),
    }
    if (body !== undefined)
      this.#upload = new Upload(body, req.fields, passing, settings, backends.deadlines, events)
    this.#sendings = new Sendings(backends.retries, req.method, this.#upload)
  }

  start(): void {
    const { req, res } = this.#exchange
    const { maxBody = NEVER } = this.#settings
    res.watch(this)
    if (res.closed) this.#finish()
    else if (this.#request.framing.bytes <= maxBody) {
      const onOver = () => this.#giveUp('deadline-exceeded')
      this.#callDeadline = callDeadline(req, this.#backends.deadlines, onOver)
      this.#attempt()
    } else {
      this.#giveUp('body-too-large')
      this.#finish()
    }
  }

  #attempt(): void {
    this.#connection = undefined
    this.#sendings.counted()
    const entry = this.#attempts.enter()
    this.#exchange.onAttempt(this.#attempts.backend.address)
    if (entry === 'admitted') this.go()
    else if (entry === 'full') {
      this.#giveUp('overloaded', TOO_MANY_WAIT)
      this.#finish()
    }
  }

  get times(): Timeouts | undefined {
    return this.#exchange.changes?.timeouts && this.#settings.timeouts
  }

  get client(): string {
    return this.#exchange.facts.network
  }

  get waitsSince(): number | undefined {
    if (this.#clientLeft) return undefined
    return this.#relay?.waitsSince ?? this.#upload?.waitsSince
  }

  giveWay(): void {
    if (this.#attempts.isWaiting) this.#giveUp('overloaded', TOO_MANY_WAIT)
    else this.#giveUp('overloaded', 'it waited for its client while others needed its place')
  }

  onNoPlace(): void {
    const { connectMs } = this.#settings.timeouts
    this.#giveUp('overloaded', `no free connection to this address within ${connectMs} ms`)
  }

  /** The request has a place at the backend. */
  go(): void {
    if (this.#clientLeft) this.#finish()
    else this.#connect()
  }

  #connect(): void {
    const { pool } = this.#attempts.backend
    if (this.#needsNew) pool.takeNew(this)
    else pool.take(this)
  }

  onConnection(connection: OutgoingRequest): void {
    if (this.#clientLeft) {
      connection.release()
      this.#finish()
      return
    }
    if (this.#upload?.canRestart === false) {
      // It was refused before, and meanwhile something of the body came that was on its way.
      connection.release()
      this.#giveUp('upstream-unreachable', 'the upstream has refused the request, and its body was begun')
      this.#finish()
      return
    }
    this.#connection = connection
    this.#reused = connection.requests > 0
    this.#exchange.onSent?.()
    connection.ask(this, this.#exchange.req.method, this.#request.head, this.#request.framing)
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

  onHead({ status, reason, fields }: ResponseHead): void {
    if (this.#sendings.isConfigured && this.#triesElsewhere(status)) return
    this.#hasHead = true
    this.#callDeadline?.end()
    this.#upload?.onAnswered()
    this.#attempts.backend.answered()
    this.#exchange.onAnswer(status, fields)
    if (this.#clientLeft) return
    const { req, res } = this.#exchange
    // The upstream responded early. The rest of the upload must not be read as the next request.
    if (req.body?.complete === false) res.closeAfter()
    const passed = exchangeAnswerFields(this.#exchange, status, fields)
    this.#relay = new Relay(res, { status, reason, fields: passed }, this.#settings.timeouts.idleMs)
  }

  onData(chunk: Buffer): void {
    this.#exchange.tail?.add(chunk)
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
    this.#exchange.tail?.complete()
    this.#finish()
    relay?.end(exchangeTrailers(this.#exchange, trailers))
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

  onCrash(error: Error): void {
    const { res } = this.#exchange
    const cause = `the gateway failed to handle the response: ${causeOf(error)}`
    this.#finish()
    if (this.#clientLeft || res.closed) return
    try {
      if (res.status === 0) {
        this.#exchange.fail('upstream-invalid', cause)
        return
      }
      this.#exchange.onCut(cause)
    } catch {
      // Not even that works: the client at least must not wait.
    }
    res.cut()
  }

  /** Counts failures against the backend. A failed connect has already been reported to it. */
  #judgeBackend(fault: ConnectionFault, error: Error, responseBegan: boolean): void {
    // What an upstream does not accept is the client's doing: it must not be able to eject a healthy address.
    if (this.#hasHead || fault === 'no-connection' || fault === 'not-accepted') return
    // An idle connection may have been closed by the upstream, and whatever has not sent everything may be to blame itself.
    const isExcused =
      fault === 'gone'
        ? this.#reused && !responseBegan
        : fault !== 'invalid' && this.#upload?.complete === false
    if (!isExcused) this.#attempts.backend.failed(error)
  }

  /**
   * A request that was never sent may go to another backend; one that was sent is sent once more, if that is safe, or if
   * the upstream has not looked at it and no content was taken. The configuration may allow more, or less.
   */
  #triesAgain(fault: ConnectionFault, responseBegan: boolean): boolean {
    if (responseBegan || this.#clientLeft) return false
    if (fault === 'no-connection') return this.#movesOn('connect')
    if (fault === 'refused') return this.#asksElsewhere()
    if (fault !== 'gone' || !this.#sendings.mayRepeat) return false
    this.#upload?.stop()
    // An upstream may have closed its idle connections, and others at the same time.
    this.#needsNew = this.#reused
    if (this.#reused && !this.#sendings.isConfigured) return this.#asksAgain()
    this.#sendings.repeated()
    return this.#movesOn('connect') || (this.#reused && this.#asksAgain())
  }

  /** The upstream has not looked at the request: it goes to another backend, or once more to this one. */
  #asksElsewhere(): boolean {
    // What was taken of the body is gone.
    if (this.#upload?.canRestart === false) return false
    this.#upload?.stop()
    if (this.#movesOn('connect')) return true
    return this.#sendings.mayAskAgain && this.#asksAgain()
  }

  /** The upstream has answered with a status after which the request goes to another backend. */
  #triesElsewhere(status: number): boolean {
    if (this.#clientLeft || !this.#sendings.mayRepeat) return false
    const connection = this.#connection
    const { backend } = this.#attempts
    if (!this.#movesOn(status as RetryReason)) return false
    backend.answered()
    connection?.abort()
    return true
  }

  /** Sends the request to the same backend once more. */
  #asksAgain(): boolean {
    if (!this.#sendings.covers('connect') || !this.#sendings.take('connect')) return false
    this.#sendings.repeated()
    this.#sendings.counted()
    this.#connection = undefined
    this.#connect()
    return true
  }

  #movesOn(reason: RetryReason): boolean {
    if (!this.#sendings.covers(reason) || !this.#attempts.canMoveOn) return false
    if (!this.#sendings.take(reason) || !this.#attempts.moveOn()) return false
    this.#upload?.stop()
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
    this.#callDeadline?.end()
    this.#upload?.stop()
    this.#attempts.leave()
    this.#exchange.onUpstreamEnd()
  }
}
