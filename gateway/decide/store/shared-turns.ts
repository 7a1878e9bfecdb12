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

/** Redis is far away when even the fastest of the latest calls took this long: a busy process makes others slow, too. */
const FAR_MS = 1.5
/** The calls that count as the latest: at least this many, at most twice as many. */
const LATEST = 32
/** With Redis far away, this many requests go on in one turn of the event loop. */
const AT_ONCE = 4

export class SharedTurns {
  readonly #send: Send
  readonly #together: (calls: () => void) => void
  readonly #now: () => number
  readonly #distance = new Distance()
  /** By their first key. */
  #turns = new Map<string, Turn[]>()

  /**
   * @param together sends all calls that its argument makes in one write
   * @param now in milliseconds, from any origin
   */
  constructor(send: Send, together: (calls: () => void) => void, now = () => performance.now()) {
    this.#send = send
    this.#together = together
    this.#now = now
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
    const sentAt = this.#now()
    void this.#send(asks, holder, waiting.length).then(answers => {
      this.#distance.called(this.#now() - sentAt)
      goOn(waiting, answers, this.#distance.isFar ? AT_ONCE : waiting.length)
    })
  }
}

/** How far away Redis is, by the fastest of the latest calls. */
class Distance {
  #calls = 0
  #fastest = Number.POSITIVE_INFINITY
  /** That of the calls before. */
  #before = Number.POSITIVE_INFINITY

  called(ms: number): void {
    this.#fastest = Math.min(this.#fastest, ms)
    this.#calls += 1
    if (this.#calls < LATEST) return
    this.#before = this.#fastest
    this.#fastest = Number.POSITIVE_INFINITY
    this.#calls = 0
  }

  get isFar(): boolean {
    return Math.min(this.#fastest, this.#before) >= FAR_MS
  }
}

/**
 * Lets waiting requests go on, `atOnce` in each turn: the first are answered before the last are forwarded. If all went
 * on at once with Redis far away, each would wait for all, and their clients would send their next requests in one bunch
 * again. With Redis at hand a bunch is worth more, because it shares the next call.
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
