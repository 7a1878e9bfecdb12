/** Calls that wait in memory until they are made: bounded, retried for about half an hour, lost with the process. */
import type { Poster } from './post.js'
import { backOff, isFinal } from './retry.js'
import { signatureHeaders } from './sign.js'

/** A call that is to be made. */
export interface Delivery {
  /** Sent as `webhook-id`, in every attempt. */
  readonly id: string
  readonly url: string
  readonly secret: string
  readonly body: string
}

export interface DeliveryHooks {
  sent(delivery: Delivery): void
  /** An attempt failed; another one follows, unless the call is dropped as well. */
  failed(delivery: Delivery, problem: string): void
  /** The call will never be made. */
  dropped(delivery: Delivery, why: string): void
}

export interface DeliveriesOptions extends DeliveryHooks {
  readonly poster: Poster
  /** Most calls that wait. */
  readonly most?: number
  /** Wait in ms after that many failed attempts. */
  readonly waitAfter?: (failures: number) => number
}

interface Waiting {
  readonly delivery: Delivery
  readonly origin: string
  failures: number
  /** When it is due, in ms since the epoch. */
  due: number
}

const MOST_WAITING = 1000
/** The waits up to half an hour. */
const MOST_RETRIES = 6
const MOST_ACTIVE = 32
/** A receiver that does not answer leaves room for others. */
const MOST_ACTIVE_PER_RECEIVER = 4
/** How long `close` waits for calls. */
const CLOSING_MS = 2000
const CLOSING = 'the gateway is shutting down'

export class Deliveries {
  readonly #options: DeliveriesOptions
  readonly #most: number
  readonly #waitAfter: (failures: number) => number
  /** The oldest first. */
  #waiting: Waiting[] = []
  readonly #active = new Map<Waiting, Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  #isClosing = false

  constructor(options: DeliveriesOptions) {
    this.#options = options
    this.#most = options.most ?? MOST_WAITING
    this.#waitAfter = options.waitAfter ?? backOff
  }

  /** Returns at once. Where too many wait, the oldest is dropped. */
  add(delivery: Delivery): void {
    if (this.#isClosing) {
      this.#options.dropped(delivery, CLOSING)
      return
    }
    this.#put({ delivery, origin: new URL(delivery.url).origin, failures: 0, due: 0 })
    this.#begin()
  }

  /** Tries what waits once more, for at most two seconds; the rest is dropped. */
  async close(): Promise<void> {
    this.#isClosing = true
    clearTimeout(this.#timer)
    for (const one of this.#waiting) one.due = 0
    this.#begin()
    const cut = setTimeout(() => this.#giveUp(), CLOSING_MS)
    while (this.#active.size > 0) await Promise.all(this.#active.values())
    clearTimeout(cut)
    this.#giveUp()
  }

  #put(one: Waiting): void {
    this.#waiting.push(one)
    if (this.#waiting.length <= this.#most) return
    const oldest = this.#waiting.shift() as Waiting
    this.#options.dropped(oldest.delivery, `more than ${this.#most} calls wait`)
  }

  /** Begins what is due and has room, and sets the timer for the rest. */
  #begin(): void {
    const now = Date.now()
    const later: Waiting[] = []
    const active = new Map<string, number>()
    for (const { origin } of this.#active.keys()) active.set(origin, (active.get(origin) ?? 0) + 1)
    for (const one of this.#waiting) {
      const beside = active.get(one.origin) ?? 0
      if (one.due > now || this.#active.size >= MOST_ACTIVE || beside >= MOST_ACTIVE_PER_RECEIVER) {
        later.push(one)
        continue
      }
      active.set(one.origin, beside + 1)
      this.#active.set(one, this.#attempt(one))
    }
    this.#waiting = later
    clearTimeout(this.#timer)
    // What is due and has no room begins when another call has ended.
    const next = Math.min(...later.filter(({ due }) => due > now).map(({ due }) => due))
    if (next < Infinity) this.#timer = setTimeout(() => this.#begin(), next - now).unref()
  }

  /** Never rejects. */
  async #attempt(one: Waiting): Promise<void> {
    const { delivery } = one
    const { status, problem } = await this.#call(delivery)
    this.#active.delete(one)
    if (problem === undefined) this.#options.sent(delivery)
    else this.#failed(one, status, problem)
    this.#begin()
  }

  async #call({ url, secret, id, body }: Delivery): Promise<{ status?: number; problem?: string }> {
    try {
      const headers = signatureHeaders([secret], id, body, Date.now())
      const status = await this.#options.poster.post(url, body, headers)
      if (status >= 200 && status < 300) return { status }
      return { status, problem: `the receiver answered ${status}` }
    } catch (error) {
      return { problem: (error as Error).message }
    }
  }

  #failed(one: Waiting, status: number | undefined, problem: string): void {
    one.failures += 1
    this.#options.failed(one.delivery, problem)
    const why = this.#whyNoMore(one.failures, status)
    if (why !== undefined) {
      this.#options.dropped(one.delivery, why)
      return
    }
    one.due = Date.now() + this.#waitAfter(one.failures)
    this.#put(one)
  }

  #whyNoMore(failures: number, status: number | undefined): string | undefined {
    if (this.#isClosing) return CLOSING
    return isFinal(failures, status, MOST_RETRIES) ? `it failed ${failures} times` : undefined
  }

  #giveUp(): void {
    for (const { delivery } of this.#waiting) this.#options.dropped(delivery, CLOSING)
    this.#waiting = []
    this.#options.poster.close()
  }
}
