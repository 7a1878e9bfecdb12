import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import httpProxy from 'http-proxy'
import type { ErrorCode } from '../errors.js'
import type { Backend } from './backend.js'
import type { Backends } from './backends.js'
import { codeOf } from './failure.js'
import { FrameFollower, GOING_AWAY } from './frames.js'
import { answerFields, byName, headOf, upstreamRequestFields } from './headers.js'
import {
  type UpgradeExchange,
  type UpgradeTransport,
  type UpstreamSettings,
  verificationOf,
} from './transport.js'

const OPENING = ['Connection', 'Upgrade', 'Upgrade', 'websocket']
const NOTHING = Buffer.alloc(0)

/**
 * Forwards WebSocket upgrades by http-proxy. The package joins the sockets; fields, time limits, refusals and
 * endings are ours, because it sends on what it should not and leaves half-closed pairs behind.
 */
export function createUpgradeTransport(settings: UpstreamSettings, backends: Backends): UpgradeTransport {
  const tunnels = new Set<Tunnel>()
  return {
    upgrade(exchange) {
      const tunnel = new Tunnel(exchange, settings, backends, () => tunnels.delete(tunnel))
      tunnels.add(tunnel)
      tunnel.start()
    },
    goAway() {
      for (const tunnel of tunnels) tunnel.goAway()
    },
    close() {
      for (const tunnel of tunnels) tunnel.cut()
    },
  }
}

class Tunnel {
  readonly #exchange: UpgradeExchange
  readonly #settings: UpstreamSettings
  readonly #backends: Backends
  readonly #onEnd: () => void
  readonly #client: Socket
  /** Those that could not be reached, and at last the one that was. */
  readonly #tried = new Set<Backend>()
  #backend: Backend | undefined
  #request: ClientRequest | undefined
  #upstream: Socket | undefined
  #timer: NodeJS.Timeout | undefined
  #connected = false
  #answered = false
  #joined = false
  /** Of what the upstream sends. */
  readonly #frames = new FrameFollower()
  #leaving = false
  #ended = false

  constructor(exchange: UpgradeExchange, settings: UpstreamSettings, backends: Backends, onEnd: () => void) {
    this.#exchange = exchange
    this.#settings = settings
    this.#backends = backends
    this.#onEnd = onEnd
    this.#client = exchange.socket as Socket
  }

  start(): void {
    const client = this.#client
    if (client.destroyed) {
      this.#finish()
      return
    }
    client.on('close', () => this.cut())
    // Fields are bytes: the package writes the head of the answer as a string.
    client.setDefaultEncoding('latin1')
    this.#open(this.#backends.choose(), this.#exchange.head)
  }

  /** `head` is what the client sent early; the package puts it back before what is still to come. */
  #open(backend: Backend, head: Buffer): void {
    const client = this.#client
    const { req, facts } = this.#exchange
    this.#occupy(backend)
    const { servername, ca } = verificationOf(backend.origin, this.#settings.ca)
    const target = Object.assign(new URL(backend.origin), { ca })
    const proxy = httpProxy.createProxyServer({ target, toProxy: true, prependPath: false })
    proxy.on('proxyReqWs', request => this.#onRequest(request))
    // A stand-in, so that the package sees the fields and the path we decided on and can change neither.
    const outgoing: IncomingMessage = Object.create(req, {
      url: { value: facts.path + facts.query },
      headers: { value: this.#requestHeaders() },
    })
    proxy.ws(outgoing, client, head, { ssl: { servername } }, error => this.#onError(error))
    // The package's own listeners would send a refusal with fields that no longer fit its body, and end the client's
    // side at an error.
    this.#request?.removeAllListeners('response').on('response', answer => this.#onRefusal(answer))
    this.#request?.removeAllListeners('error').on('error', error => this.#onError(error))
  }

  cut(): void {
    this.#request?.destroy()
    this.#upstream?.destroy()
    this.#client.destroy()
    this.#finish()
  }

  /** As soon as no frame is under way; who does not answer by then is cut at the end of the drain. */
  goAway(): void {
    const upstream = this.#upstream
    const client = this.#client
    if (upstream === undefined || client.writableEnded) return
    this.#leaving = true
    if (!this.#frames.betweenFrames) return
    upstream.unpipe(client)
    upstream.resume()
    // The client's own Close, which answers this one, still passes to the upstream.
    client.end(GOING_AWAY)
  }

  #onFrames(bytes: Buffer): void {
    this.#frames.pass(bytes)
    if (this.#leaving) this.goAway()
  }

  #requestHeaders(): Record<string, string | string[]> {
    const { req, facts, project } = this.#exchange
    const fields = upstreamRequestFields(req, facts, project, this.#settings.fingerprintHeaders)
    return byName([...fields, ...OPENING])
  }

  /** Our listeners come before the package's own. */
  #onRequest(request: ClientRequest): void {
    const { facts } = this.#exchange
    const { connectMs, headMs } = this.#settings.timeouts
    this.#request = request
    this.#connected = false
    // The package repairs slashes in it.
    request.path = facts.path + facts.query
    this.#limit(connectMs, () => request.destroy(new Error(`no connection within ${connectMs} ms`)))
    request.on('socket', socket =>
      socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => {
        this.#connected = true
        this.#limit(headMs, () => this.#onSilence())
      }),
    )
    request.on('upgrade', (answer, upstream) => this.#onOpen(answer, upstream as Socket))
  }

  #limit(ms: number, onTimeout: () => void): void {
    clearTimeout(this.#timer)
    if (this.#answered) return
    this.#timer = setTimeout(onTimeout, ms)
  }

  #onSilence(): void {
    this.#backend?.failed(new Error('no answer to a WebSocket handshake'))
    this.#fail('upstream-timeout')
  }

  #onOpen(answer: IncomingMessage, upstream: Socket): void {
    clearTimeout(this.#timer)
    this.#answered = true
    this.#joined = true
    this.#upstream = upstream
    this.#backend?.answered()
    this.#exchange.onAnswer(101)
    // After the package's own listener: it is to have passed the bytes on, and to miss none.
    process.nextTick(() => upstream.on('data', bytes => this.#onFrames(bytes)))
    // Whatever passes either way is read from or written to the client's socket.
    this.#client.setTimeout(this.#settings.timeouts.upgradeIdleMs, () => this.cut())
    upstream.on('close', failed => {
      if (failed || !upstream.readableEnded) this.cut()
      else this.#client.destroySoon()
    })
    const fields = answerFields(101, answer.rawHeaders, this.#exchange.answerFields)
    Object.assign(answer, { headers: byName([...fields, ...OPENING]) })
  }

  /** Any answer but 101: passed on as the last one of this connection. */
  #onRefusal(answer: IncomingMessage): void {
    clearTimeout(this.#timer)
    this.#answered = true
    this.#backend?.answered()
    const client = this.#client
    const request = this.#request
    const settings = this.#settings
    // What follows the answer must not end the connection before the answer has passed, as the package would.
    request?.removeAllListeners('error').on('error', () => {})
    client.setTimeout(settings.timeouts.idleMs, () => this.cut())
    const status = answer.statusCode as number
    this.#exchange.onAnswer(status)
    const fields = answerFields(status, answer.rawHeaders, this.#exchange.answerFields)
    fields.push('Connection', 'close')
    client.write(headOf(`HTTP/1.1 ${status} ${answer.statusMessage}`, fields))
    answer.pipe(client, { end: false })
    answer.on('close', () => {
      if (answer.complete) client.destroySoon()
      else client.resetAndDestroy()
    })
  }

  #onError(error: Error): void {
    clearTimeout(this.#timer)
    if (this.#joined) this.cut()
    else if (!this.#answered && !this.#client.destroyed) this.#failOver(error)
  }

  #failOver(error: Error): void {
    const code = codeOf(error, false)
    if (code === 'upstream-unreachable') this.#backend?.unreachable(error)
    // What a backend may have seen is not shown to the next: it could be what broke it.
    const next = this.#connected ? undefined : this.#backends.chooseAfter(this.#tried)
    if (next === undefined) this.#fail(code)
    else this.#open(next, NOTHING)
  }

  #occupy(backend: Backend | undefined): void {
    if (this.#backend !== undefined) this.#backend.tunnels -= 1
    this.#backend = backend
    if (backend === undefined) return
    backend.tunnels += 1
    this.#tried.add(backend)
  }

  #fail(code: ErrorCode): void {
    if (this.#answered || this.#client.destroyed) return
    this.#answered = true
    this.#exchange.fail(code)
    this.#request?.destroy()
    this.#finish()
  }

  #finish(): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#timer)
    this.#occupy(undefined)
    this.#onEnd()
    this.#exchange.onUpstreamEnd()
  }
}
