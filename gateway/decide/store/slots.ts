/** The slots this process holds in Redis: renewed while their requests live, given back once (design section 5). */
import type { Log } from '../../types.js'

/** What is asked of Redis. */
export interface SlotCommands {
  /** `lua/renew-1.lua`: 1 when renewed, 0 when the slot was gone. */
  renew(key: string, holder: string, ttlUs: number): Promise<number>
  zrem(key: string, holder: string): Promise<unknown>
}

/** One slot, as the request that took it knows it. */
export interface HeldSlot {
  /** Gives it back; safe to call twice. */
  release(): void
  /** `listener` hears, at most once, that it ran out unrenewed and may belong to another by now. */
  onLost(listener: () => void): void
}

interface Hold {
  readonly key: string
  readonly holder: string
  readonly ttlMs: number
  renewAt: number
  /** When the renewal under way was sent; undefined when none is. */
  sentAt: number | undefined
  lost: () => void
}

const TICK_MS = 250
/** How long Redis may take for a renewal, and how long a failed one waits for the next. */
const PATIENCE_MS = 1000

export class RedisSlots {
  readonly #redis: SlotCommands
  readonly #log: Log
  readonly #onSilence: (key: string) => void
  readonly #holds = new Set<Hold>()
  readonly #ticks: NodeJS.Timeout

  /** `onSilence` hears of a key whose renewal is not answered: a connection that swallows bytes must be given up for a new one. */
  constructor(redis: SlotCommands, log: Log, onSilence: (key: string) => void) {
    this.#redis = redis
    this.#log = log
    this.#onSilence = onSilence
    this.#ticks = setInterval(() => this.#tick(), TICK_MS).unref()
  }

  /** Looks after a slot that was just taken for `ttlMs`. */
  hold(key: string, holder: string, ttlMs: number): HeldSlot {
    const renewAt = performance.now() + intervalOf(ttlMs)
    const hold: Hold = { key, holder, ttlMs, renewAt, sentAt: undefined, lost: () => {} }
    this.#holds.add(hold)
    return {
      release: () => {
        if (!this.#holds.delete(hold)) return
        // A release that is lost heals by itself when the slot's TTL ends.
        this.#redis.zrem(key, holder).catch(error => this.#log.debug({ err: error }, 'slot not released'))
      },
      onLost: listener => {
        hold.lost = listener
      },
    }
  }

  /** Renews nothing more: what is still held ends with its TTL. */
  close(): void {
    clearInterval(this.#ticks)
    this.#holds.clear()
  }

  #tick(): void {
    const now = performance.now()
    let unanswered: Hold | undefined
    for (const hold of this.#holds) {
      // Never two at a time: a Redis that is slow must not be asked more for it.
      if (hold.sentAt === undefined) {
        if (hold.renewAt <= now) this.#renew(hold, now)
      } else if (hold.sentAt + PATIENCE_MS <= now) unanswered = hold
    }
    // After a pause of this process the answer may be here, unread: what arrived is read first.
    if (unanswered !== undefined)
      setImmediate(() => unanswered.sentAt !== undefined && this.#onSilence(unanswered.key))
  }

  #renew(hold: Hold, now: number): void {
    hold.sentAt = now
    const again = (ms: number): void => {
      hold.sentAt = undefined
      hold.renewAt = now + ms
    }
    this.#redis.renew(hold.key, hold.holder, hold.ttlMs * 1000).then(
      renewed => {
        again(intervalOf(hold.ttlMs))
        if (renewed === 0 && this.#holds.delete(hold)) hold.lost()
      },
      error => {
        again(Math.min(intervalOf(hold.ttlMs), PATIENCE_MS))
        this.#log.debug({ err: error }, 'slot not renewed')
      },
    )
  }
}

/** Two renewals may fail before the slot runs out. */
function intervalOf(ttlMs: number): number {
  return ttlMs / 3
}
