/**
 * Requests that ask for the same within one turn of the event loop share one call, which tells how many of them it
 * admitted: the busier a key, the less each of its requests costs.
 */
import type { Answer, Ask } from './store.js'

/** Asks once for `times` equal requests; returns the answers of each, or undefined if Redis could not count. */
type Send = (asks: readonly Ask[], holder: string, times: number) => Promise<readonly Answer[][] | undefined>

type GoesOn = (answers: Answer[] | undefined) => void

interface Turn {
  readonly asks: readonly Ask[]
  readonly holder: string
  readonly waiting: GoesOn[]
}

/** A call that takes this long counts as a long one: Redis is not nearby. */
const LONG_CALL_MS = 5
/** After a long call, this many requests go on in one turn of the event loop. */
const AT_ONCE = 2

export class SharedTurns {
  readonly #send: Send
  readonly #together: (calls: () => void) => void
  /** By their first key. */
  #turns = new Map<string, Turn[]>()

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
    return new Promise(resolve => this.#turn(asks, holder).waiting.push(resolve))
  }

  #turn(asks: readonly Ask[], holder: string): Turn {
    if (this.#turns.size === 0) setImmediate(() => this.#end())
    const key = asks[0]?.key as string
    const turns = this.#turns.get(key)
    const known = turns?.find(turn => areEqual(turn.asks, asks))
    if (known !== undefined) return known
    const turn: Turn = { asks, holder, waiting: [] }
    if (turns === undefined) this.#turns.set(key, [turn])
    else turns.push(turn)
    return turn
  }

  #end(): void {
    const ended = this.#turns
    this.#turns = new Map()
    this.#together(() => {
      for (const turns of ended.values()) for (const turn of turns) this.#ask(turn)
    })
  }

  #ask({ asks, holder, waiting }: Turn): void {
    const sentAt = performance.now()
    void this.#send(asks, holder, waiting.length).then(answers => {
      const isLong = performance.now() - sentAt >= LONG_CALL_MS
      goOn(waiting, answers, isLong ? AT_ONCE : waiting.length)
    })
  }
}

/**
 * Lets waiting requests go on, `atOnce` in each turn: the first are answered before the last are forwarded. If all went
 * on at once after a long call, each would wait for all, and their clients would send their next requests in one bunch
 * again. After a short call a bunch is worth more, because it shares the next call.
 */
function goOn(
  waiting: readonly GoesOn[],
  answers: readonly Answer[][] | undefined,
  atOnce: number,
  from = 0,
): void {
  const end = Math.min(from + atOnce, waiting.length)
  for (let i = from; i < end; i += 1) waiting[i]?.(answers?.[i])
  if (end < waiting.length) setImmediate(goOn, waiting, answers, atOnce, end)
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
