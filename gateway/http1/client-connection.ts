/** One connection to an upstream, and the requests it carries, one after the other. */
import type { Socket } from 'node:net'
import type { Fields } from '../message.js'
import type { Asker, ConnectionFault } from './asker.js'
import { BodyDecoder, type BodySink } from './body-decoder.js'
import type { Connector, SocketReader } from './connector.js'
import type { Deadlines, Timed } from './deadlines.js'
import { isPersistent, responseFraming } from './framing.js'
import { HeadBuffer } from './head-buffer.js'
import type { Framing, ParsedResponse } from './message.js'
import { RequestWriter } from './request-writer.js'
import { parseResponseHead } from './response-head.js'

const MAX_HEAD = 16 * 1024
/** Interim answers to one request: who sends more means harm. */
const MAX_INTERIM = 64
const NEVER = Number.POSITIVE_INFINITY
const NO_TRAILERS: readonly string[] = []

/** Milliseconds: to connect, for the head of an answer once the request is sent, and without a byte of its body. */
export interface WaitingTimes {
  readonly connectMs: number
  readonly headMs: number
  readonly idleMs: number
}

/** Where a connection belongs. */
export interface Home {
  readonly times: WaitingTimes
  readonly deadlines: Deadlines
  /** It may carry another request; `told` are the fields of its last answer, if there was one. */
  onFree(connection: ClientConnection, told: Fields | undefined): void
  onUnreachable(error: Error): void
  onClosed(connection: ClientConnection): void
}

export class ClientConnection implements Timed, SocketReader, BodySink {
  /** Set by its home, too, while it is free. */
  deadline: number
  /** Requests begun on it. */
  requests = 0
  readonly #home: Home
  readonly #socket: Socket
  /** It carries one request only, and may then leave HTTP. */
  readonly #isForTakeover: boolean
  readonly #writer: RequestWriter
  readonly #heads = new HeadBuffer(MAX_HEAD, 'HTTP/1.')
  /** Undefined while it is free, and once it is closed. */
  #asker: Asker | undefined
  #isOpen = false
  #isClosed = false
  #method = ''
  /** The request has left as a whole. */
  #isSent = false
  /** A byte of the answer has come. */
  #heard = false
  #interim = 0
  #answer: ParsedResponse | undefined
  #body: BodyDecoder | undefined
  #trailers = NO_TRAILERS
  #isPaused = false

  constructor(home: Home, connector: Connector, asker: Asker) {
    this.#home = home
    this.#asker = asker
    this.#isForTakeover = asker.onSwitch !== undefined
    this.#socket = this.#isForTakeover ? connector.connectForTakeover(this) : connector.connect(this)
    this.#writer = new RequestWriter(this.#socket)
    this.deadline = home.deadlines.now() + home.times.connectMs
    home.deadlines.add(this)
  }

  /** Begins a request. With a body it leaves with `flush`, and `send` and `finish` follow. Only while it is yours. */
  ask(asker: Asker, method: string, head: string, framing: Framing): void {
    this.requests += 1
    this.#asker = asker
    this.#method = method
    this.#isSent = this.#heard = false
    this.#interim = 0
    this.deadline = NEVER
    this.#writer.begin(head, framing)
    if (framing.kind === 'none') this.finish(NO_TRAILERS)
  }

  /** Gives it to the next asker, unasked. */
  release(): void {
    this.#asker = undefined
    if (!this.#isClosed) this.#home.onFree(this, undefined)
  }

  /** A piece of the request's body. False when the upstream must read first: `onSendable` follows. */
  send(chunk: Buffer): boolean {
    if (this.#isClosed) return true
    if (!this.#writer.write(chunk)) this.#fail('gone', new Error('a body longer than was announced'))
    if (!this.#writer.blocked) return true
    this.#awaitHead()
    return false
  }

  flush(): void {
    if (!this.#isClosed) this.#writer.flush()
  }

  /** The end of the request's body. */
  finish(trailers: readonly string[]): void {
    if (this.#isClosed) return
    this.#isSent = this.#writer.end(trailers)
    if (this.#isSent) this.#awaitHead()
    else this.#fail('gone', new Error('a body shorter than was announced'))
  }

  /** Holds the answer back, but for what is on its way already. */
  pause(): void {
    if (this.#isPaused || this.#isClosed) return
    this.#isPaused = true
    this.deadline = NEVER
    this.#socket.pause()
  }

  resume(): void {
    if (!this.#isPaused || this.#isClosed) return
    this.#isPaused = false
    if (this.#body !== undefined) this.#awaitBody()
    this.#socket.resume()
  }

  /** Ends it; its asker hears nothing more. */
  abort(): void {
    this.#asker = undefined
    if (this.#isClosed) return
    this.#leaveHome()
    this.#socket.destroy()
  }

  /** Ends it; its asker is told that it is gone. */
  cut(): void {
    this.#fail(this.#isOpen ? 'gone' : 'no-connection', new Error('the connection was closed here'))
  }

  onDeadline(): void {
    const { connectMs, headMs } = this.#home.times
    if (this.#isOpen) this.#fail('silent', new Error(`no answer within ${headMs} ms, or a pause in it`))
    else this.onGone(Object.assign(new Error(`no connection within ${connectMs} ms`), { code: 'ETIMEDOUT' }))
  }

  onOpen(): void {
    if (this.#isClosed) return
    this.#isOpen = true
    this.deadline = NEVER
    this.#asker?.onConnection(this)
  }

  onBytes(bytes: Buffer, more: boolean): void {
    if (this.#isClosed) return
    // Nobody has asked: what comes belongs to no request.
    if (this.#asker === undefined) {
      this.abort()
      return
    }
    this.#heard = true
    let rest: Buffer | undefined
    try {
      rest = this.#read(bytes)
    } catch (error) {
      this.#fail('invalid', error as Error)
    }
    if (rest !== undefined) this.#onAnswered(rest.length === 0, more)
    else if (this.#body !== undefined) this.#onReadEnd()
  }

  onFin(): void {
    if (this.#isClosed) return
    if (this.#body?.end()) this.#onAnswered(false, false)
    else this.#fail('gone', new Error('the upstream closed the connection'))
  }

  onDrain(): void {
    if (this.#isClosed || this.#isSent) return
    if (this.#answer === undefined) this.deadline = NEVER
    this.#asker?.onSendable()
  }

  onGone(error: Error): void {
    if (this.#isClosed) return
    if (!this.#isOpen) this.#home.onUnreachable(error)
    this.#fail(this.#isOpen ? 'gone' : 'no-connection', error)
  }

  /** Of the decoder of the answer's body. */
  onData(chunk: Buffer): void {
    this.#asker?.onData(chunk)
  }

  /** Of the decoder of the answer's body: what came behind it is yet to be seen. */
  onEnd(trailers: readonly string[]): void {
    this.#trailers = trailers
  }

  /** Undefined while the answer is not complete; then what came behind it. */
  #read(chunk: Buffer): Buffer | undefined {
    let rest = chunk
    while (this.#body === undefined) {
      const found = this.#heads.add(rest)
      if (found === undefined) return undefined
      rest = found.rest
      const head = parseResponseHead(found.head)
      if (head.status >= 200) this.#onHead(head)
      else if (head.status === 101) {
        this.#onSwitch(head, rest)
        return undefined
      } else this.#onInterim(head)
      if (this.#asker === undefined) return undefined
    }
    rest = this.#body.push(rest)
    return this.#body.done ? rest : undefined
  }

  #onInterim({ status, fields }: ParsedResponse): void {
    this.#interim += 1
    if (this.#interim > MAX_INTERIM) throw new Error('too many interim answers')
    if (status !== 100) this.#asker?.onInterim(status, fields)
  }

  #onHead(head: ParsedResponse): void {
    const framing = responseFraming(head, this.#method)
    this.#answer = head
    this.#trailers = NO_TRAILERS
    this.deadline = NEVER
    this.#asker?.onHead(head)
    this.#body = new BodyDecoder(framing, this)
  }

  #onReadEnd(): void {
    if (!this.#isPaused) this.#awaitBody()
    this.#asker?.onReadEnd()
  }

  #onSwitch(head: ParsedResponse, rest: Buffer): void {
    const asker = this.#asker
    if (asker?.onSwitch === undefined) throw new Error('a switch of protocols that nobody asked for')
    this.#asker = undefined
    this.#leaveHome()
    const socket = this.#socket.pause().removeAllListeners('data')
    asker.onSwitch(head, { socket, head: rest })
  }

  /** `more` as in `onBytes`. */
  #onAnswered(mayStay: boolean, more: boolean): void {
    const asker = this.#asker
    const answer = this.#answer
    if (asker === undefined || answer === undefined) return
    const stays = mayStay && this.#isSent && isPersistent(answer) && !this.#isForTakeover
    this.#asker = this.#answer = this.#body = undefined
    this.resume()
    if (!stays) this.abort()
    else if (more) setImmediate(() => this.#free(answer))
    else this.#free(answer)
    asker.onEnd(this.#trailers)
  }

  #free({ fields }: ParsedResponse): void {
    this.deadline = NEVER
    if (!this.#isClosed) this.#home.onFree(this, fields)
  }

  #fail(fault: ConnectionFault, error: Error): void {
    const asker = this.#asker
    this.abort()
    asker?.onFault(fault, error, this.#heard)
  }

  /** The other end has all it can take now. */
  #awaitHead(): void {
    if (this.#answer === undefined) this.deadline = this.#home.deadlines.now() + this.#home.times.headMs
  }

  #awaitBody(): void {
    this.deadline = this.#home.deadlines.now() + this.#home.times.idleMs
  }

  #leaveHome(): void {
    this.#isClosed = true
    this.#home.deadlines.delete(this)
    this.#home.onClosed(this)
  }
}
