/** The slots this process holds in Redis: renewed while their requests live, given back once. */
import type { Log } from '../../types.js'
import type { SlotHandle } from '../store/store.js'

export interface SlotCommands {
  /** `lua/renew-slot-1.lua`: 1 when renewed, 0 when the slot was gone. */
  renew(key: string, member: string, ttlUs: number): Promise<number>
  zrem(key: string, member: string): Promise<unknown>
}

/** A slot as it was asked for. */
export interface Slot {
  readonly key: string
  readonly holder: string
  readonly ttlMs: number
}

interface Hold extends Slot {
  renewAt: number
  /** When the renewal under way was sent; undefined when none is. */
  sentAt: number | undefined
  lost: () => void
}

/** A slot that may have been taken, but that no request holds. */
interface Orphan {
  readonly slot: Slot
  /** When it expires by itself. */
  readonly endsAt: number
  isAsked: boolean
}

const TICK_MS = 250
/** How long Redis may take for a renewal, and how long a failed one waits for the next at most. */
const PATIENCE_MS = 1000

export class RedisSlots {
  readonly #redis: SlotCommands
  readonly #log: Log
  readonly #onSilence: (key: string) => void
  readonly #holds = new Set<Hold>()
  readonly #heldOf = new Map<string, number>()
  readonly #orphans = new Set<Orphan>()
  readonly #ticks: NodeJS.Timeout

  /** `onSilence` is called with a key whose renewal is not answered: its connection must be replaced. */
  constructor(redis: SlotCommands, log: Log, onSilence: (key: string) => void) {
    this.#redis = redis
    this.#log = log
    this.#onSilence = onSilence
    this.#ticks = setInterval(() => this.#tick(), TICK_MS).unref()
  }

  /** Renews a slot that was just taken, until it is released. */
  hold(slot: Slot): Required<SlotHandle> {
    const renewAt = performance.now() + intervalOf(slot.ttlMs)
    const hold: Hold = { ...slot, renewAt, sentAt: undefined, lost: () => {} }
    this.#holds.add(hold)
    this.#heldOf.set(slot.key, this.heldOf(slot.key) + 1)
    return {
      release: () => {
        if (!this.#drop(hold)) return
        // A release that is lost heals by itself when the slot's TTL ends.
        this.#free(slot).catch(error => this.#log.debug({ err: error }, 'slot not released'))
      },
      onLost: listener => {
        hold.lost = listener
      },
    }
  }

  /** How many slots of `key` are held here. */
  heldOf(key: string): number {
    return this.#heldOf.get(key) ?? 0
  }

  /** Frees a slot that may have been taken, now or once Redis can be reached again. */
  abandon(slot: Slot): void {
    const orphan = { slot, endsAt: performance.now() + slot.ttlMs, isAsked: false }
    this.#orphans.add(orphan)
    this.#freeOrphan(orphan)
  }

  /** Stops renewing: slots that are still held end with their TTL. */
  close(): void {
    clearInterval(this.#ticks)
    this.#holds.clear()
    this.#heldOf.clear()
    this.#orphans.clear()
  }

  /** False if it was no longer held. */
  #drop(hold: Hold): boolean {
    if (!this.#holds.delete(hold)) return false
    const left = this.heldOf(hold.key) - 1
    if (left > 0) this.#heldOf.set(hold.key, left)
    else this.#heldOf.delete(hold.key)
    return true
  }

  #free(slot: Slot): Promise<unknown> {
    return this.#redis.zrem(slot.key, memberOf(slot))
  }

  #freeOrphan(orphan: Orphan): void {
    orphan.isAsked = true
    this.#free(orphan.slot).then(
      () => this.#orphans.delete(orphan),
      () => {
        orphan.isAsked = false
      },
    )
  }

  #tick(): void {
    const now = performance.now()
    let unanswered: Hold | undefined
    for (const hold of this.#holds) {
      // Never two at a time: a slow Redis must not get more calls because of it.
      if (hold.sentAt === undefined) {
        if (hold.renewAt <= now) this.#renew(hold, now)
      } else if (hold.sentAt + PATIENCE_MS <= now) unanswered = hold
    }
    for (const orphan of this.#orphans) {
      if (orphan.endsAt <= now) this.#orphans.delete(orphan)
      else if (!orphan.isAsked) this.#freeOrphan(orphan)
    }
    // After a pause of this process the answer may have arrived unread: what arrived is read first.
    if (unanswered !== undefined)
      setImmediate(() => unanswered.sentAt !== undefined && this.#onSilence(unanswered.key))
  }

  #renew(hold: Hold, now: number): void {
    hold.sentAt = now
    const again = (ms: number): void => {
      hold.sentAt = undefined
      hold.renewAt = now + ms
    }
    this.#redis.renew(hold.key, memberOf(hold), hold.ttlMs * 1000).then(
      renewed => {
        again(intervalOf(hold.ttlMs))
        if (renewed === 0 && this.#drop(hold)) hold.lost()
      },
      error => {
        again(Math.min(intervalOf(hold.ttlMs), PATIENCE_MS))
        this.#log.debug({ err: error }, 'slot not renewed')
      },
    )
  }
}

/** The slot's member of its set in Redis: see `lua/take.lua`. */
function memberOf({ holder, ttlMs }: Slot): string {
  return `${holder}@${ttlMs * 1000}`
}

/** Two renewals may fail before the slot expires. */
function intervalOf(ttlMs: number): number {
  return ttlMs / 3
}
