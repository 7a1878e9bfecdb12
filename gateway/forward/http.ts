import type { IncomingMessage } from 'node:http'
import { buildConnector, Client, type Dispatcher, Pool } from 'undici'
import { codeOf, isSocketGone } from './failure.js'
import { answerFields, upstreamRequestFields } from './headers.js'
import { hideContinue, type ReadingState } from './interim.js'
import { type Exchange, originOf, type Transport, type UpstreamSettings } from './transport.js'
import { Upload } from './upload.js'

/** As many as requests in parallel: queueing for a connection costs more than opening one. */
const CONNECTIONS = 256

/** Forwards plain HTTP by undici's raw dispatch: flat header arrays, one handler object per request. */
export function createHttpTransport(settings: UpstreamSettings): Transport {
  const origin = originOf(settings)
  const { connectMs, headMs, idleMs } = settings.timeouts
  const connector = buildConnector({ timeout: connectMs })
  const options = {
    connections: CONNECTIONS,
    headersTimeout: headMs,
    bodyTimeout: idleMs,
    factory: (target: URL, given: object) => new Connection(target, given as Client.Options, connector),
  }
  const pool = new Pool(origin.origin, options)
  /** For second attempts: every connection new, so that none can be stale. */
  const fresh = new Pool(origin.origin, { ...options, pipelining: 0 })
  const lanes: Lanes = { pool, fresh, servername: origin.hostname }

  return {
    forward(exchange) {
      const { req, facts, project } = exchange
      const fields = upstreamRequestFields(req, facts, project, settings.fingerprintHeaders)
      new Forwarding(exchange, fields, lanes).start()
    },
    async close() {
      await Promise.all([pool.destroy(), fresh.destroy()])
    },
  }
}

interface Lanes {
  readonly pool: Pool
  readonly fresh: Pool
  /** Of an https upstream; undici would take the client's Host for it. */
  readonly servername: string
}

/** What undici does not tell its handlers of the connection they are on. */
interface ConnectionState extends ReadingState {
  /** Requests begun on the present socket. */
  requests: number
}

class Connection extends Client {
  private readonly state: ConnectionState

  constructor(origin: URL, options: Client.Options, connector: buildConnector.connector) {
    const state: ConnectionState = { answering: false, requests: 0 }
    super(origin, {
      ...options,
      connect: (target: buildConnector.Options, done: buildConnector.Callback) =>
        connector(target, (error, socket) => {
          if (error !== null) return done(error, null)
          state.requests = 0
          hideContinue(socket, state)
          done(null, socket)
        }),
    })
    this.state = state
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (handler instanceof Forwarding) handler.connection = this.state
    return super.dispatch(options, handler)
  }
}

type Abort = (error?: Error) => void

const NOTHING = Buffer.alloc(0)
const REASON = /^[\t\x20-\x7e]*$/

/** One request under way. Implements undici's raw handler, which alone gives fields as they came. */
class Forwarding implements Dispatcher.DispatchHandler {
  connection: ConnectionState | undefined

  private readonly exchange: Exchange
  private readonly options: Dispatcher.DispatchOptions
  private readonly lanes: Lanes
  private readonly upload: Upload | undefined
  private abort: Abort | undefined
  private resume: (() => void) | undefined
  private reused = false
  private retried = false
  /** A byte of an answer has arrived from the upstream. */
  private heard = false
  private answered = false
  private bodyless = false
  private wrote = false
  private clientLeft = false
  private ended = false

  constructor(exchange: Exchange, headers: string[], lanes: Lanes) {
    const { facts, req } = exchange
    this.exchange = exchange
    this.lanes = lanes
    this.upload = hasBody(req) ? new Upload(exchange.body ?? req) : undefined
    const options = {
      path: facts.path + facts.query,
      method: facts.method,
      headers,
      body: this.upload ?? null,
      servername: lanes.servername,
    }
    this.options = options
  }

  start(): void {
    const { res } = this.exchange
    if (res.destroyed) {
      this.clientLeft = true
      this.finish()
      return
    }
    res.on('close', () => this.onClientClose())
    this.lanes.pool.dispatch(this.options, this)
  }

  onConnect(abort: Abort): void {
    this.abort = abort
    if (this.clientLeft) abort()
    const { connection } = this
    if (connection === undefined) return
    connection.answering = false
    this.reused = connection.requests++ > 0
  }

  onResponseStarted(): void {
    this.heard = true
  }

  onHeaders(status: number, raw: Buffer[], resume: () => void, reason: string): boolean {
    if (status < 200) return true
    if (this.connection !== undefined) this.connection.answering = true
    this.resume = resume
    const upstream: string[] = []
    for (const part of raw) upstream.push(part.toString('latin1'))
    if (!framedAsChunkedAtMost(upstream)) throw new Error('unknown transfer coding')
    if (this.clientLeft) return true

    const { req, res, answerFields: own } = this.exchange
    const fields = answerFields(status, upstream, own)
    // Of an upload cut short the rest may still come; it must not be read as the next request.
    if (!req.complete) fields.push('Connection', 'close')
    this.answered = true
    this.bodyless = status === 204 || status === 304 || req.method === 'HEAD'
    res.writeHead(status, REASON.test(reason) ? reason : undefined, fields)
    process.nextTick(sendHead, this)
    return true
  }

  onData(chunk: Buffer): boolean {
    if (this.clientLeft) return true
    const { res } = this.exchange
    this.wrote = true
    if (res.write(chunk)) return true
    res.once('drain', this.resume as () => void)
    return false
  }

  onComplete(): void {
    this.wrote = true
    if (!this.clientLeft) this.exchange.res.end()
    this.finish()
  }

  onError(error: Error): void {
    // Undici counts the bytes of a 304 against its Content-Length, which describes the cached body.
    if (this.bodyless) this.onComplete()
    else if (this.canRetry(error)) this.retry()
    else this.onFailure(error)
  }

  private retry(): void {
    this.retried = true
    this.lanes.fresh.dispatch(this.options, this)
  }

  private onFailure(error: Error): void {
    this.upload?.destroy()
    if (!this.clientLeft) {
      if (this.answered) this.cut()
      else this.exchange.fail(codeOf(error, this.heard))
    }
    this.finish()
  }

  /** The head must not wait for a body that is slow to come. An empty write, unlike flushHeaders, keeps bytes. */
  sendHead(): void {
    if (!this.wrote && !this.clientLeft) this.exchange.res.write(NOTHING)
  }

  private onClientClose(): void {
    if (this.ended) return
    this.clientLeft = true
    const sent = this.upload === undefined || this.upload.complete
    if (this.exchange.keepUpstream && sent && this.abort !== undefined) this.resume?.()
    else this.abort?.()
  }

  /** Safe to send again (RFC 9110 section 9.2.2), and nothing heard: the upstream had closed the idle socket. */
  private canRetry(error: Error): boolean {
    if (this.retried || this.heard || !this.reused || this.clientLeft || this.upload !== undefined)
      return false
    return isSafe(this.options.method) && isSocketGone(error)
  }

  /** Ends the client's connection so that its answer looks as cut as it is, even where only the end marks the end. */
  private cut(): void {
    const { req, res } = this.exchange
    if (req.httpVersionMinor === 0) res.socket?.resetAndDestroy()
    else res.destroy()
  }

  private finish(): void {
    if (this.ended) return
    this.ended = true
    this.exchange.onUpstreamEnd()
  }
}

function sendHead(forwarding: Forwarding): void {
  forwarding.sendHead()
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** A coding we did not undo would reach the client as if it were the content (RFC 9112 section 6.1). */
function framedAsChunkedAtMost(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    if (name.length !== 17 || name.toLowerCase() !== 'transfer-encoding') continue
    if ((fields[i + 1] as string).toLowerCase() !== 'chunked') return false
  }
  return true
}
