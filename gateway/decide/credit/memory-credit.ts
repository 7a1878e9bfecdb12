/** Credit in this process, which ends with it. */
import {
  type AddedCredit,
  type CreditAnswer,
  type CreditStore,
  creditIdKey,
  creditKey,
  creditsKey,
  MOST_LISTED,
  type NewCredit,
} from './credit.js'

/** Ids that are remembered, at most. */
const MOST_IDS = 10_000

export class MemoryCredit implements CreditStore {
  /** By credit key, then by window. */
  readonly #credit = new Map<string, Map<string, number>>()
  readonly #lists = new Map<string, readonly AddedCredit[]>()
  readonly #ids = new Map<string, AddedCredit>()

  /** The credit that counts for a window of a counter. */
  of(counterKey: string, window: string): number {
    return this.#credit.size === 0 ? 0 : (this.#credit.get(creditKey(counterKey))?.get(window) ?? 0)
  }

  async add({ key, entry, most, id }: NewCredit): Promise<CreditAnswer> {
    const idKey = id === undefined ? undefined : creditIdKey(key, id)
    const known = idKey === undefined ? undefined : this.#ids.get(idKey)
    if (known !== undefined) return { result: 'repeated', entry: known }
    const before = this.of(key, entry.window)
    const credit = before + entry.amount
    if (credit < 0 || credit > most) return { result: 'beyond', credit: before }
    const added = { ...entry, credit }
    const windows = this.#credit.get(creditKey(key)) ?? new Map<string, number>()
    this.#credit.set(creditKey(key), windows.set(entry.window, credit))
    this.#lists.set(creditsKey(key), [added, ...this.#listOf(key)].slice(0, MOST_LISTED))
    if (idKey !== undefined) this.#remember(idKey, added)
    return { result: 'added', entry: added }
  }

  async list(key: string): Promise<readonly AddedCredit[]> {
    return this.#listOf(key)
  }

  #listOf(key: string): readonly AddedCredit[] {
    return this.#lists.get(creditsKey(key)) ?? []
  }

  #remember(idKey: string, added: AddedCredit): void {
    this.#ids.set(idKey, added)
    const [oldest] = this.#ids.keys()
    if (this.#ids.size > MOST_IDS && oldest !== undefined) this.#ids.delete(oldest)
  }
}
