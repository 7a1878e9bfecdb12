/** One connection to an upstream, and the requests it carries, one after another. */
import type { Socket } from 'node:net'
import type { Fields } from '../message.js'
import {
  type ConnectionFault,
  type OutgoingRequest,
  type RequestFraming,
  type ResponseHandler,
  tell,
  type WaitingTimes,
} from '../outgoing-request.js'
import type { ConnectionOwner } from './connection-owner.js'
import type { Connector, SocketReader } from './connector.js'
import type { Timed } from './deadlines.js'
import { isPersistent } from './framing.js'
import type { ParsedResponse } from './message.js'
import { RequestWriter } from './request-writer.js'
import { ResponseReader, type ResponseSink } from './response-reader.js'
import { SILENCE_MS } from './silence.js'

const NEVER = Number.POSITIVE_INFINITY
const NO_TRAILERS: readonly string[] = []

export class ClientConnection implements OutgoingRequest, Timed, SocketReader, ResponseSink {
  /** Also set by its home, while the connection is free. */
  deadline: number
  /** Requests begun on this connection. */
  requests = 0
  readonly #owner: ConnectionOwner
  readonly #socket: Socket
  /** It carries a single request, and may then switch protocols. */
  readonly #isForTakeover: boolean
  readonly #writer: RequestWriter
  readonly #reader = new ResponseReader(this)
  /** Undefined while the connection is free, and once it is closed. */
  #handler: ResponseHandler | undefined
  #isOpen = false
  #isClosed = false
  /** The whole request has been written. */
  #isSent = false
  /** At least one byte of the response has arrived. */
  #responseBegan = false
  #isPaused = false

  constructor(owner: ConnectionOwner, connector: Connector, handler: ResponseHandler) {
    this.#owner = owner
    this.#handler = handler
    this.#isForTakeover = handler.onSwitch !== undefined
    this.#socket = this.#isForTakeover ? connector.connectForTakeover(this) : connector.connect(this)
    this.#writer = new RequestWriter(this.#socket)
    this.deadline = owner.deadlines.now() + this.#times.connectMs
    owner.deadlines.add(this)
  }

  ask(handler: ResponseHandler, method: string, head: string, framing: RequestFraming): void {
    this.requests += 1
    this.#handler = handler
    this.#isSent = this.#responseBegan = false
    this.#reader.begin(method)
    this.deadline = NEVER
    this.#writer.begin(head, framing)
    if (framing.kind === 'none') this.finish(NO_TRAILERS)
  }

  release(): void {
    this.#handler = undefined
    if (!this.#isClosed) this.#owner.onFree(this, undefined)
  }

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

  finish(trailers: readonly string[]): void {
    if (this.#isClosed) return
    this.#isSent = this.#writer.end(trailers)
    if (this.#isSent) this.#awaitHead()
    else this.#fail('gone', new Error('a body shorter than was announced'))
  }

  pause(): void {
    if (this.#isPaused || this.#isClosed) return
    this.#isPaused = true
    this.deadline = NEVER
    this.#socket.pause()
  }

  resume(): void {
    if (!this.#isPaused || this.#isClosed) return
    this.#isPaused = false
    if (this.#reader.inBody) this.#awaitBody()
    this.#socket.resume()
  }

  /** Also closes the connection, since nothing could follow on it. */
  abort(): void {
    this.#handler = undefined
    if (this.#isClosed) return
    this.#leaveOwner()
    this.#socket.destroy()
  }

  /** Closes the connection and reports a fault to the handler. */
  cut(): void {
    this.#fail(this.#isOpen ? 'gone' : 'no-connection', new Error('the connection was closed here'))
  }

  onDeadline(): void {
    if (this.#owner.silence.end(this)) return
    const { connectMs, headMs } = this.#times
    if (this.#isOpen) this.#fail('silent', new Error(`no answer within ${headMs} ms, or a pause in it`))
    else this.onGone(Object.assign(new Error(`no connection within ${connectMs} ms`), { code: 'ETIMEDOUT' }))
  }

  onOpen(): void {
    if (this.#isClosed) return
    this.#isOpen = true
    this.deadline = NEVER
    this.#tell(handler => handler.onConnection(this))
  }

  onBytes(bytes: Buffer, more: boolean): void {
    if (this.#isClosed) return
    // No request is in progress, so these bytes are no response to anything.
    if (this.#handler === undefined) {
      if (this.#reader.isBodyless) this.#owner.silence.isFaulty = true
      this.abort()
      return
    }
    this.#responseBegan = true
    let rest: Buffer | undefined
    try {
      rest = this.#reader.push(bytes)
    } catch (error) {
      this.#fail('invalid', error as Error)
    }
    if (rest !== undefined) this.#onAnswered(rest.length === 0, more)
    else if (this.#reader.inBody) this.#onReadEnd()
  }

  onFin(): void {
    if (this.#isClosed) return
    if (this.#reader.end()) this.#onAnswered(false, false)
    else this.#fail('gone', new Error('the upstream closed the connection'))
  }

  onDrain(): void {
    if (this.#isClosed || this.#isSent) return
    if (this.#reader.head === undefined) this.deadline = NEVER
    this.#tell(handler => handler.onSendable())
  }

  onGone(error: Error): void {
    if (this.#isClosed) return
    if (!this.#isOpen) this.#owner.onUnreachable(error)
    this.#fail(this.#isOpen ? 'gone' : 'no-connection', error)
  }

  get isFinal(): boolean {
    return this.#handler !== undefined
  }

  onInterim(status: number, fields: Fields): void {
    this.#tell(handler => handler.onInterim(status, fields))
  }

  onHead(head: ParsedResponse): void {
    this.deadline = NEVER
    this.#tell(handler => handler.onHead(head))
  }

  onData(chunk: Buffer): void {
    this.#tell(handler => handler.onData(chunk))
  }

  onSwitch(head: ParsedResponse, rest: Buffer): void {
    const handler = this.#handler
    if (handler?.onSwitch === undefined) throw new Error('a switch of protocols that nobody asked for')
    this.#handler = undefined
    this.#leaveOwner()
    const socket = this.#socket.pause().removeAllListeners('data')
    handler.onSwitch(head, { socket, head: rest })
  }

  #onReadEnd(): void {
    if (!this.#isPaused) this.#awaitBody()
    this.#tell(handler => handler.onReadEnd())
  }

  /** `mayStay`: nothing came after the response. `more` as in `onBytes`. */
  #onAnswered(mayStay: boolean, more: boolean): void {
    const handler = this.#handler
    const answer = this.#reader.head
    if (handler === undefined || answer === undefined) return
    const stays = mayStay && this.#isSent && isPersistent(answer) && !this.#isForTakeover
    const { isBodyless, mayTrail } = this.#reader
    if (isBodyless && !mayStay) this.#owner.silence.isFaulty = true
    const isDoubtful = isBodyless && (mayTrail || this.#owner.silence.isFaulty)
    this.#handler = undefined
    this.#reader.clear()
    this.resume()
    if (!stays) this.abort()
    else if (isDoubtful) this.#awaitSilence(answer)
    else if (more) setImmediate(() => this.#free(answer))
    else this.#free(answer)
    this.#tell(one => one.onEnd(this.#reader.trailers), handler)
  }

  /** Waits for the body that a faulty upstream may send: it must not become another client's response. */
  #awaitSilence(answer: ParsedResponse): void {
    const { silence, deadlines } = this.#owner
    if (silence.begin(this, () => this.#free(answer))) this.deadline = deadlines.now() + SILENCE_MS
    else this.abort()
  }

  #free({ fields }: ParsedResponse): void {
    this.deadline = NEVER
    if (!this.#isClosed) this.#owner.onFree(this, fields)
  }

  #fail(fault: ConnectionFault, error: Error): void {
    const handler = this.#handler
    this.abort()
    this.#tell(one => one.onFault(fault, error, this.#responseBegan), handler)
  }

  /** The upstream has the whole request, or takes no more of it for now. */
  #awaitHead(): void {
    if (this.#reader.head === undefined) this.deadline = this.#owner.deadlines.now() + this.#times.headMs
  }

  #awaitBody(): void {
    this.deadline = this.#owner.deadlines.now() + this.#times.idleMs
  }

  get #times(): WaitingTimes {
    return this.#handler?.times ?? this.#owner.times
  }

  /** What the handler throws ends its request, and the connection with it. */
  #tell(call: (handler: ResponseHandler) => void, handler = this.#handler): void {
    if (handler !== undefined) tell(handler, call, () => this.abort())
  }

  #leaveOwner(): void {
    this.#isClosed = true
    this.#owner.deadlines.delete(this)
    this.#owner.onClosed(this)
  }
}
