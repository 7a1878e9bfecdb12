/**
 * A Redis Cluster, even one that hides behind a single address, keeps keys in slots, and a script can access only one
 * of them. What a request asks of other slots than its project's is asked first, as a reservation. It is confirmed when
 * everything was granted and given back otherwise, so a refused request charges nothing, and a mere reservation never
 * begins a block.
 */
import { isWithoutProject } from '../key.js'
import { at, grantWholeGroups, notAsked } from '../store/groups.js'
import { type Answer, type Ask, type CounterStore, type LateCharge, RESERVED_MS } from '../store/store.js'
import { hashTag } from './hash-slot.js'

export interface Splittable extends CounterStore {
  /** Confirms what reserving asks were charged. */
  confirm(asks: readonly Ask[]): void
}

/** The asks of one call, as indexes in the list of all asks. */
type Part = readonly number[]

export class ClusterStore implements CounterStore {
  readonly #inner: Splittable
  readonly #hasSlots: () => boolean

  /** @param hasSlots whether keys live in slots, as far as is known now; until they do, all is asked in one call */
  constructor(inner: Splittable, hasSlots: () => boolean = () => true) {
    this.#inner = inner
    this.#hasSlots = hasSlots
  }

  take(asks: readonly Ask[], holder: string): Answer[] | Promise<Answer[]> {
    if (!this.#hasSlots()) return this.#inner.take(asks, holder)
    const parts = partsOf(asks)
    const main = parts.pop()
    if (main !== undefined && parts.length > 0) return this.#takeParts(asks, parts, main, holder)
    const given = this.#inner.take(asks, holder)
    return given instanceof Promise ? given.then(given => maybeReserved(asks, given)) : given
  }

  rides(observed: Ask, enforced: readonly Ask[]): boolean {
    if (!this.#hasSlots()) return this.#inner.rides(observed, enforced)
    const main = partsOf(enforced).at(-1)?.[0]
    return main !== undefined && tagOf(enforced[main] as Ask) === tagOf(observed)
  }

  async peek(asks: readonly Ask[]): Promise<Answer[]> {
    if (!this.#hasSlots()) return this.#inner.peek(asks)
    const answers: Answer[] = []
    const parts = partsOf(asks)
    await Promise.all(
      parts.map(async part => {
        const given = await this.#inner.peek(at(asks, part))
        for (const [j, i] of part.entries()) answers[i] = given[j] as Answer
      }),
    )
    return grantWholeGroups(asks, answers)
  }

  giveBack(asks: readonly Ask[], answers: readonly Answer[]): void {
    for (const part of this.#partsOf(asks)) {
      this.#inner.giveBack(at(asks, part), at(answers, part))
    }
  }

  charge(charges: readonly LateCharge[]): void {
    for (const part of this.#partsOf(charges.map(({ ask }) => ask))) this.#inner.charge(at(charges, part))
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  #partsOf(asks: readonly Ask[]): Part[] {
    return this.#hasSlots() ? partsOf(asks) : [[...asks.keys()]]
  }

  async #takeParts(
    asks: readonly Ask[],
    others: readonly Part[],
    main: Part,
    holder: string,
  ): Promise<Answer[]> {
    const group = asks[others[0]?.[0] as number]?.group
    const reserving = asks.map(ask => (ask.demand.kind === 'meter' ? { ...ask, reserves: true } : ask))
    const answers: Answer[] = []
    const enforced = main.filter(i => asks[i]?.group === group)
    // Waits for all, so that what other parts were charged is given back even if one fails.
    const first = await Promise.allSettled(
      others.map(async part => {
        const given = await this.#inner.take(at(reserving, part), holder)
        for (const [j, i] of part.entries()) answers[i] = given[j] as Answer
      }),
    )
    const undo = () => this.#undo(reserving, answers, others)
    const failed = first.find(one => one.status === 'rejected')
    if (failed !== undefined) {
      undo()
      throw failed.reason
    }
    if (others.flat().some(i => answers[i]?.granted === false)) {
      undo()
      for (const i of main) answers[i] = notAsked(asks[i] as Ask)
      await this.#lookAt(enforced, asks, answers)
      return grantWholeGroups(asks, maybeReserved(asks, answers))
    }
    try {
      const given = await this.#inner.take(at(asks, main), holder)
      for (const [j, i] of main.entries()) answers[i] = given[j] as Answer
    } catch (error) {
      undo()
      throw error
    }
    if (enforced.some(i => answers[i]?.granted === false)) undo()
    else this.#inner.confirm(at(reserving, others.flat()))
    return grantWholeGroups(asks, answers)
  }

  /**
   * What is asked of the project's slot is only read once another slot has refused: the client should wait for all
   * limits.
   */
  async #lookAt(part: Part, asks: readonly Ask[], answers: Answer[]): Promise<void> {
    const seen = await this.#inner.peek(at(asks, part))
    for (const [j, i] of part.entries()) if (seen[j]?.store === 'redis') answers[i] = seen[j] as Answer
  }

  #undo(asks: readonly Ask[], answers: readonly Answer[], parts: readonly Part[]): void {
    for (const part of parts) {
      const charged = part.filter(i => answers[i]?.granted)
      if (charged.length === 0) continue
      this.#inner.giveBack(at(asks, charged), at(answers, charged))
    }
  }
}

/** Asks by the slot that keeps them. The project's slot comes last: most requests ask it. */
function partsOf(asks: readonly Ask[]): number[][] {
  const parts = new Map<string, number[]>()
  for (const [i, ask] of asks.entries()) {
    const tag = tagOf(ask)
    const part = parts.get(tag)
    if (part === undefined) parts.set(tag, [i])
    else part.push(i)
  }
  const isProject = (part: readonly number[]) => !isWithoutProject(asks[part[0] as number]?.key ?? '')
  return [...parts.values()].sort((a, b) => Number(isProject(a)) - Number(isProject(b)))
}

/** Another request's reservation may be why windows had no room. Meters count reservations by themselves. */
function maybeReserved(asks: readonly Ask[], answers: readonly Answer[]): Answer[] {
  return answers.map((answer, i) => {
    const { key, demand } = asks[i] as Ask
    const isFinal = demand.kind !== 'windows' || !isWithoutProject(key)
    if (isFinal || answer.granted || answer.unavailable) return answer
    return { ...answer, askAgainMs: RESERVED_MS }
  })
}

function tagOf({ key }: Ask): string {
  return hashTag(key) ?? key
}
