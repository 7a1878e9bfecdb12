import type { Dispatcher } from 'undici'
import type { ErrorCode } from '../errors.js'
import { Attempts } from './attempts.js'
import type { Backends } from './backends.js'
import { type Outgoing, Rider } from './connections.js'
import { codeOf, isSafe, isSocketGone } from './failure.js'
import { answerFields, framedAsChunkedAtMost, upstreamRequestFields } from './headers.js'
import { relayInterim } from './interim.js'
import { Relay } from './relay.js'
import type { Exchange, Transport, UpstreamSettings } from './transport.js'
import { hasBody, isTooLarge, Upload } from './upload.js'

/** Forwards plain HTTP by undici's raw dispatch: flat header arrays, one handler object per request. */
export function createHttpTransport(settings: UpstreamSettings, backends: Backends): Transport {
  const { fingerprintHeaders } = settings
  return {
    forward(exchange) {
      const { req, facts, project } = exchange
      const fields = upstreamRequestFields(req, facts, project, fingerprintHeaders)
      if (settings.embedded) fields.push('x-sluice-network', facts.network)
      new Forwarding(exchange, fields, settings, backends).start()
    },
  }
}

type Abort = (error?: Error) => void

/** One request under way. Implements undici's raw handler, which alone gives fields as they came. */
class Forwarding extends Rider implements Dispatcher.DispatchHandler {
  readonly #exchange: Exchange
  readonly #settings: UpstreamSettings
  readonly #options: Outgoing
  readonly #upload: Upload | undefined
  readonly #attempts: Attempts
  #abort: Abort | undefined
  #resume: (() => void) | undefined
  #queueing: NodeJS.Timeout | undefined
  #reused = false
  #resent = false
  /** A byte of an answer has arrived from the upstream. */
  #heard = false
  #relay: Relay | undefined
  #clientLeft = false
  #ended = false

  constructor(exchange: Exchange, headers: string[], settings: UpstreamSettings, backends: Backends) {
    super()
    const { facts, req } = exchange
    this.#exchange = exchange
    this.#settings = settings
    this.#upload = hasBody(req)
      ? new Upload(exchange.body ?? req, settings, code => this.#giveUp(code))
      : undefined
    this.#options = {
      path: facts.path + facts.query,
      method: facts.method,
      headers,
      body: this.#upload ?? null,
    }
    this.#attempts = new Attempts(backends, settings.timeouts.headMs, this)
  }

  start(): void {
    const { req, res } = this.#exchange
    if (res.destroyed) {
      this.#finish()
      return
    }
    res.on('close', () => this.#onClientClose())
    if (isTooLarge(req, this.#settings)) {
      this.#giveUp('body-too-large')
      this.#end()
    } else this.#attempt()
  }

  #attempt(): void {
    this.#abort = undefined
    const entry = this.#attempts.enter()
    if (entry === 'admitted') this.go()
    else if (entry === 'waiting') {
      this.#queueing = setTimeout(() => this.#giveUp('overloaded'), this.#settings.timeouts.connectMs)
    } else {
      this.#giveUp('overloaded')
      this.#end()
    }
  }

  /** A place is taken for it. */
  go(): void {
    clearTimeout(this.#queueing)
    if (this.#clientLeft) this.#end()
    else this.#attempts.backend.connections.dispatch(this.#options, this)
  }

  onConnect(abort: Abort): void {
    this.#abort = abort
    if (this.#clientLeft) abort()
    const { connection } = this
    if (connection === undefined) return
    connection.answering = false
    this.#reused = connection.requests++ > 0
  }

  onResponseStarted(): void {
    this.#heard = true
  }

  onHeaders(status: number, raw: Buffer[], resume: () => void, reason: string): boolean {
    const upstream: string[] = []
    for (const part of raw) upstream.push(part.toString('latin1'))
    if (status < 100) throw new Error('no such status')
    if (status < 200) {
      if (!this.#clientLeft) relayInterim(this.#exchange, status, upstream)
      return true
    }
    if (this.connection !== undefined) this.connection.answering = true
    this.#resume = resume
    this.#attempts.backend.answered()
    if (!framedAsChunkedAtMost(upstream)) throw new Error('unknown transfer coding')
    if (this.#clientLeft) return true

    const fields = answerFields(status, upstream, this.#exchange.answerFields)
    // Of an upload cut short the rest may still come; it must not be read as the next request.
    if (!this.#exchange.req.complete) fields.push('Connection', 'close')
    this.#relay = new Relay(this.#exchange, this.#settings.timeouts.idleMs, status, reason, fields)
    return true
  }

  onData(chunk: Buffer): boolean {
    if (!this.#clientLeft) return this.#relay?.write(chunk, this.#resume) ?? true
    // A stream without end must not be discarded for ever: once the slot is gone, nobody wants it.
    if (!this.#exchange.keepUpstream) this.#abort?.()
    return true
  }

  onComplete(): void {
    if (!this.#clientLeft) this.#relay?.end()
    this.#finish()
  }

  onError(error: Error): void {
    if (this.#ended) return
    // Undici counts the bytes of a 304 against its Content-Length, which describes the cached body.
    if (this.#relay?.bodyless) this.onComplete()
    else {
      this.#judgeBackend(error)
      if (!this.#triesAgain(error)) this.#onFailure(error)
    }
  }

  /** Where no connection could be opened, that was told already. */
  #judgeBackend(error: Error): void {
    if (this.#heard || this.#abort === undefined) return
    const stale = this.#reused && isSocketGone(error)
    // Silence is the client's own doing while it has yet to send.
    const silent = codeOf(error, false) === 'upstream-timeout' && this.#upload?.complete !== false
    if (silent || (isSocketGone(error) && !stale)) this.#attempts.backend.failed(error)
  }

  /** What was never sent may go to another backend; what was sent is sent again once, if that is safe. */
  #triesAgain(error: Error): boolean {
    if (this.#heard || this.#clientLeft) return false
    if (this.#abort === undefined) {
      return codeOf(error, false) === 'upstream-unreachable' && this.#movesOn()
    }
    if (this.#resent || this.#upload !== undefined || !isSafe(this.#options.method)) return false
    if (!isSocketGone(error)) return false
    this.#resent = true
    if (!this.#reused) return this.#movesOn()
    // The upstream had closed the idle connection: nothing is wrong with the backend.
    this.#abort = undefined
    this.#attempts.backend.connections.dispatchFresh(this.#options, this)
    return true
  }

  #movesOn(): boolean {
    if (!this.#attempts.moveOn()) return false
    this.#attempt()
    return true
  }

  #onFailure(error: Error): void {
    this.#upload?.destroy()
    if (!this.#clientLeft) {
      if (this.#relay !== undefined) this.#relay.cut()
      else this.#exchange.fail(codeOf(error, this.#heard))
    }
    this.#finish()
  }

  #onClientClose(): void {
    if (this.#ended) return
    this.#clientLeft = true
    const sent = this.#upload === undefined || this.#upload.complete
    if (this.#exchange.keepUpstream && sent && this.#abort !== undefined) this.#resume?.()
    else this.#withdraw()
  }

  /** Ends a request that waits in vain: the client hears of it, unless its answer has begun. */
  #giveUp(code: ErrorCode): void {
    if (this.#ended || this.#clientLeft) return
    this.#clientLeft = true
    if (this.#relay !== undefined) this.#relay.cut()
    else {
      // What is left of the upload must not be read as the next request.
      if (!this.#exchange.req.complete) this.#exchange.res.shouldKeepAlive = false
      this.#exchange.fail(code)
    }
    this.#withdraw()
  }

  /** Leaves the upstream, or the queue for it; while a connection is being opened, onConnect sees to it. */
  #withdraw(): void {
    if (this.#abort !== undefined) this.#abort()
    else if (this.#attempts.stopWaiting()) this.#end()
  }

  /** Ends what never came to a backend. */
  #end(): void {
    this.#upload?.destroy()
    this.#finish()
  }

  #finish(): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#queueing)
    this.#attempts.leave()
    this.#exchange.onUpstreamEnd()
  }
}
