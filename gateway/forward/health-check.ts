/** Asks one address, again and again, whether it is well. */
import type { ConnectionFault, OutgoingRequest, RequestPool, ResponseHandler } from '../outgoing-request.js'
import type { CheckCounts } from './standing.js'

export interface HealthSettings extends CheckCounts {
  readonly path: string
  readonly everyMs: number
  /** The longest wait for a connection and the head of the answer. */
  readonly timeoutMs: number
}

/** Receives what checks find. */
export interface CheckEvents {
  /** `error` says why it has failed; `isCutOff` if no connection could be opened. */
  checked(error: Error | undefined, isCutOff: boolean): void
  /** The body of an answer is too long to be read. */
  tooLong(bytes: number): void
}

/** Most bytes of a body that are read. */
const MOST_BYTES = 64 * 1024
/** Checks are spread by up to this share of their interval, so that those of many addresses do not come together. */
const SPREAD = 0.1

/** One check at a time, on a connection of its own: the next begins an interval after the last, or when that has ended. */
export class HealthChecks {
  readonly #settings: HealthSettings
  readonly #pool: RequestPool
  readonly #head: string
  readonly #events: CheckEvents
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  #toldLength = false

  /** @param authority host and port of the address, for its Host field */
  constructor(settings: HealthSettings, pool: RequestPool, authority: string, events: CheckEvents) {
    this.#settings = settings
    this.#pool = pool
    this.#events = events
    const fields = `Host: ${authority}\r\nUser-Agent: sluice-health-check\r\nAccept: */*\r\nConnection: close\r\n`
    this.#head = `GET ${settings.path} HTTP/1.1\r\n${fields}\r\n`
    this.#after(0)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#pool.close()
  }

  #after(ms: number): void {
    this.#timer = setTimeout(() => this.#check(), ms).unref()
  }

  #check(): void {
    const { everyMs, timeoutMs } = this.#settings
    const begun = performance.now()
    const check = new Check(this.#head, timeoutMs, {
      checked: (error, isCutOff) => {
        if (!this.#isClosed) this.#events.checked(error, isCutOff)
      },
      tooLong: bytes => {
        if (!this.#toldLength && !this.#isClosed) this.#events.tooLong(bytes)
        this.#toldLength = true
      },
      ended: () => {
        const interval = everyMs * (1 + SPREAD * (Math.random() * 2 - 1))
        if (!this.#isClosed) this.#after(Math.max(0, begun + interval - performance.now()))
      },
    })
    this.#pool.takeNew(check)
  }
}

interface CheckEnd extends CheckEvents {
  /** It uses no connection any more. */
  ended(): void
}

/** One check. Its result is known with the head of the answer; the body is read up to a bound and dropped. */
class Check implements ResponseHandler {
  readonly #head: string
  readonly #events: CheckEnd
  readonly #timer: NodeJS.Timeout
  #connection: OutgoingRequest | undefined
  #isKnown = false
  #isLate = false
  #ended = false
  #bytes = 0

  constructor(head: string, timeoutMs: number, events: CheckEnd) {
    this.#head = head
    this.#events = events
    this.#timer = setTimeout(() => this.#onLate(timeoutMs), timeoutMs).unref()
  }

  onConnection(connection: OutgoingRequest): void {
    if (this.#isLate) {
      connection.release()
      this.#end()
      return
    }
    this.#connection = connection
    connection.ask(this, 'GET', this.#head, { kind: 'none', bytes: 0 })
  }

  onHead({ status }: { readonly status: number }): void {
    const isWell = status >= 200 && status < 300
    this.#know(isWell ? undefined : new Error(`answered ${status} to the health check`))
  }

  onData({ length }: Buffer): void {
    this.#bytes += length
    if (this.#bytes <= MOST_BYTES || this.#ended) return
    this.#events.tooLong(MOST_BYTES)
    this.#breakOff()
  }

  onEnd(): void {
    this.#end()
  }

  onFault(fault: ConnectionFault, error: Error): void {
    const isNonsense = fault === 'invalid'
    const shown = isNonsense
      ? new Error(`the answer to the health check is not valid HTTP: ${error.message}`)
      : error
    this.#know(shown, fault === 'no-connection')
    this.#end()
  }

  onCrash(error: Error): void {
    this.#know(error)
    this.#end()
  }

  onSendable(): void {}
  onInterim(): void {}
  onReadEnd(): void {}

  /** Without a connection, whoever opens it says when that has failed. */
  #onLate(timeoutMs: number): void {
    this.#isLate = true
    this.#know(new Error(`no answer to the health check within ${timeoutMs} ms`))
    if (this.#connection !== undefined) this.#breakOff()
  }

  #breakOff(): void {
    this.#connection?.abort()
    this.#end()
  }

  #know(error: Error | undefined, isCutOff = false): void {
    if (this.#isKnown) return
    this.#isKnown = true
    this.#events.checked(error, isCutOff)
  }

  #end(): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#timer)
    this.#events.ended()
  }
}
