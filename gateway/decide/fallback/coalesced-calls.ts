/**
 * Requests that ask for the same within one turn of the event loop share one call, which tells how many of them it
 * admitted: the busier a key, the less each of its requests costs.
 */
import type { Answer, Ask } from '../store/store.js'

/** Asks once for `times` equal requests; returns the answers of each, or undefined if Redis could not count. */
type Send = (asks: readonly Ask[], holder: string, times: number) => Promise<readonly Answer[][] | undefined>

type Resume = (answers: Answer[] | undefined) => void

interface Batch {
  readonly asks: readonly Ask[]
  readonly holder: string
  readonly waiting: Resume[]
}

/** A call that takes this long counts as a long one: Redis is not nearby. */
const LONG_CALL_MS = 5
/** After a long call, this many requests go on in one turn of the event loop. */
const AT_ONCE = 2

export class CoalescedCalls {
  readonly #send: Send
  readonly #together: (calls: () => void) => void
  /** By their first key. */
  #batches = new Map<string, Batch[]>()

  /** @param together sends all calls that its argument makes in one write */
  constructor(send: Send, together: (calls: () => void) => void) {
    this.#send = send
    this.#together = together
  }

  /** A slot is held by one request, so asks for slots are never shared. */
  take(asks: readonly Ask[], holder: string): Promise<Answer[] | undefined> {
    if (asks.some(({ demand }) => demand.kind === 'slots')) {
      return this.#send(asks, holder, 1).then(answers => answers?.[0])
    }
    return new Promise(resolve => this.#batchOf(asks, holder).waiting.push(resolve))
  }

  #batchOf(asks: readonly Ask[], holder: string): Batch {
    if (this.#batches.size === 0) setImmediate(() => this.#end())
    const key = asks[0]?.key as string
    const batches = this.#batches.get(key)
    const known = batches?.find(batch => areEqual(batch.asks, asks))
    if (known !== undefined) return known
    const batch: Batch = { asks, holder, waiting: [] }
    if (batches === undefined) this.#batches.set(key, [batch])
    else batches.push(batch)
    return batch
  }

  #end(): void {
    const ended = this.#batches
    this.#batches = new Map()
    this.#together(() => {
      for (const batches of ended.values()) for (const batch of batches) this.#ask(batch)
    })
  }

  #ask({ asks, holder, waiting }: Batch): void {
    const sentAt = performance.now()
    void this.#send(asks, holder, waiting.length).then(answers => {
      const isLong = performance.now() - sentAt >= LONG_CALL_MS
      resume(waiting, answers, isLong ? AT_ONCE : waiting.length)
    })
  }
}

/**
 * Lets waiting requests go on, `atOnce` in each turn: the first are answered before the last are forwarded. If all went
 * on at once after a long call, each would wait for all, and their clients would send their next requests in one bunch
 * again. After a short call a bunch is worth more, because it shares the next call.
 */
function resume(
  waiting: readonly Resume[],
  answers: readonly Answer[][] | undefined,
  atOnce: number,
  from = 0,
): void {
  const end = Math.min(from + atOnce, waiting.length)
  for (let i = from; i < end; i += 1) waiting[i]?.(answers?.[i])
  if (end < waiting.length) setImmediate(resume, waiting, answers, atOnce, end)
}

/** A rule's demand is one object until its numbers change, so the same object means the same question. */
function areEqual(some: readonly Ask[], others: readonly Ask[]): boolean {
  return (
    some.length === others.length &&
    some.every(({ key, demand, group, reserves }, i) => {
      const other = others[i] as Ask
      const isSame = key === other.key && demand === other.demand && group === other.group
      return isSame && reserves === other.reserves
    })
  )
}
