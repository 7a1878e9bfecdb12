import type { ErrorCode } from '../errors.js'
import { listHas } from '../http1/fields.js'
import { headText } from '../http1/head-text.js'
import type { ResponseWatcher, Takeover } from '../message.js'
import type { ConnectionFault, OutgoingRequest, ResponseHandler, ResponseHead } from '../outgoing-request.js'
import type { Backend } from './backend.js'
import type { Backends } from './backends.js'
import { causeOf, codeOf } from './failure.js'
import { requestLine, upstreamRequestFields } from './headers.js'
import { Relay } from './relay.js'
import { RequestFields } from './request-fields.js'
import { exchangeAnswerFields, exchangeTrailers } from './response-fields.js'
import { RouteSettings } from './route-settings.js'
import type { Exchange, Timeouts, UpgradeTransport, UpstreamSettings } from './transport.js'
import { Tunnel } from './tunnel.js'

const OPENING = ['Connection', 'Upgrade', 'Upgrade', 'websocket']

/** Forwards WebSocket upgrades: the handshake like any request, then the bytes of both sides. */
export function createUpgradeTransport(settings: UpstreamSettings, backends: Backends): UpgradeTransport {
  const upgrades = new Set<Upgrading>()
  const fields = new RequestFields(settings)
  const byRoute = new RouteSettings(settings)
  let leaving = false
  return {
    upgrade(exchange, takeOver) {
      const end = () => upgrades.delete(upgrade)
      const upgrade = new Upgrading(exchange, takeOver, byRoute.for(exchange.changes), fields, backends, end)
      upgrades.add(upgrade)
      if (leaving) upgrade.goAway()
      upgrade.start()
    },
    goAway() {
      leaving = true
      for (const upgrade of upgrades) upgrade.goAway()
    },
    close() {
      for (const upgrade of upgrades) upgrade.cut()
    },
  }
}

/** One WebSocket, from its handshake to its close. */
class Upgrading implements ResponseHandler, ResponseWatcher {
  readonly #exchange: Exchange
  readonly #takeOver: () => Takeover
  readonly #settings: UpstreamSettings
  readonly #fields: RequestFields
  readonly #backends: Backends
  readonly #onEnd: () => void
  /** Backends tried so far, the current one included. */
  readonly #tried = new Set<Backend>()
  #backend: Backend | undefined
  /** The upstream connection of the handshake. */
  #connection: OutgoingRequest | undefined
  /** Passes on the upstream's refusal. */
  #relay: Relay | undefined
  #tunnel: Tunnel | undefined
  #leaving = false
  #ended = false

  constructor(
    exchange: Exchange,
    takeOver: () => Takeover,
    settings: UpstreamSettings,
    fields: RequestFields,
    backends: Backends,
    onEnd: () => void,
  ) {
    this.#exchange = exchange
    this.#takeOver = takeOver
    this.#settings = settings
    this.#fields = fields
    this.#backends = backends
    this.#onEnd = onEnd
  }

  get times(): Timeouts | undefined {
    return this.#exchange.changes?.timeouts && this.#settings.timeouts
  }

  start(): void {
    const { res } = this.#exchange
    res.watch(this)
    if (res.closed) this.#finish()
    else this.#open(this.#backends.choose())
  }

  #open(backend: Backend): void {
    this.#occupy(backend)
    this.#exchange.onAttempt(backend.address)
    backend.upgradePool.takeNew(this)
  }

  /** A WebSocket that is still to be opened gets its Close at once. */
  goAway(): void {
    this.#leaving = true
    this.#tunnel?.goAway()
  }

  cut(): void {
    this.#connection?.abort()
    if (this.#tunnel === undefined) this.#exchange.res.cut()
    else this.#tunnel.cut()
    this.#finish()
  }

  onConnection(connection: OutgoingRequest): void {
    if (this.#ended) {
      connection.abort()
      return
    }
    this.#connection = connection
    const fields = upstreamRequestFields(
      this.#exchange,
      this.#fields.changedBy(this.#exchange.changes?.fields),
      this.#settings,
    )
    const opening = 'Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
    const head = requestLine(this.#exchange) + fields + opening
    connection.ask(this, this.#exchange.req.method, head, { kind: 'none', bytes: 0 })
  }

  onSwitch({ fields }: ResponseHead, upstream: Takeover): void {
    if (!listHas(fields.get('upgrade') ?? '', 'websocket')) {
      upstream.socket.destroy()
      this.#fail('upstream-invalid', 'it switched to a protocol other than WebSocket')
      return
    }
    const accepted = headText('HTTP/1.1 101 Switching Protocols', [
      ...exchangeAnswerFields(this.#exchange, 101, fields),
      ...OPENING,
    ])
    this.#backend?.answered()
    this.#exchange.onAnswer(101, fields)
    const { upgradeIdleMs } = this.#settings.timeouts
    const client = this.#takeOver()
    const { messages } = this.#exchange
    this.#tunnel = new Tunnel(client, upstream, accepted, upgradeIdleMs, () => this.#finish(), messages)
    if (this.#leaving) this.#tunnel.goAway()
  }

  /** Any response but 101: passed on as the last one on the client's connection. */
  onHead({ status, reason, fields }: ResponseHead): void {
    const { res } = this.#exchange
    this.#backend?.answered()
    this.#exchange.onAnswer(status, fields)
    res.closeAfter()
    const head = { status, reason, fields: exchangeAnswerFields(this.#exchange, status, fields) }
    this.#relay = new Relay(res, head, this.#settings.timeouts.idleMs)
  }

  onData(chunk: Buffer): void {
    if (this.#relay?.write(chunk) === false) this.#connection?.pause()
  }

  onReadEnd(): void {
    if (this.#relay?.flush() === false) this.#connection?.pause()
  }

  onEnd(trailers: readonly string[]): void {
    this.#finish()
    this.#relay?.end(exchangeTrailers(this.#exchange, trailers))
  }

  onFault(fault: ConnectionFault, error: Error, heard: boolean): void {
    if (this.#ended) return
    if (this.#relay?.begun) {
      this.#exchange.onCut(causeOf(error))
      this.cut()
      return
    }
    if (fault !== 'no-connection') this.#backend?.failed(error)
    // A handshake that a backend may have received is not sent to another: it could be what broke the first.
    const next = fault === 'no-connection' ? this.#backends.chooseAfter(this.#tried) : undefined
    if (next === undefined) this.#fail(codeOf(fault, heard), causeOf(error))
    else this.#open(next)
  }

  onCrash(error: Error): void {
    this.#exchange.onCut(`the gateway failed to handle the response: ${causeOf(error)}`)
    this.cut()
  }

  /** Interim responses are dropped: they have no meaning before a switch. */
  onInterim(): void {}

  onSendable(): void {}

  /** The client can take more of the refusal. */
  onDrain(): void {
    this.#relay?.onDrain()
    this.#connection?.resume()
  }

  /** The client has left, or the response has been sent. */
  onClose(): void {
    if (this.#ended || this.#tunnel !== undefined) return
    this.#connection?.abort()
    this.#finish()
  }

  #occupy(backend: Backend | undefined): void {
    if (this.#backend !== undefined) this.#backend.tunnels -= 1
    this.#backend = backend
    if (backend === undefined) return
    backend.tunnels += 1
    this.#tried.add(backend)
  }

  #fail(code: ErrorCode, cause: string): void {
    this.#finish()
    this.#exchange.res.closeAfter()
    this.#exchange.fail(code, cause)
  }

  #finish(): void {
    if (this.#ended) return
    this.#ended = true
    this.#occupy(undefined)
    this.#onEnd()
    this.#exchange.onUpstreamEnd()
  }
}
