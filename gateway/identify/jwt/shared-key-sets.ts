/** Key sets by their address: those of one process, and what the processes of a gateway tell each other, so that all trust the same keys. */
import type { Log } from '../../types.js'
import { type InUse, Shared } from '../shared.js'
import { KeySet } from './key-set.js'
import { keySource, nameOf } from './key-source.js'
import type { Keys } from './token.js'

/** A set that a process has read. */
export interface ReadKeySet {
  /** The same in all of them. */
  readonly id: string
  readonly set: Keys
  /** When the read began. */
  readonly begun: number
}

/** Of reloads one after another, each with other issuers, the first are forgotten. */
const MOST = 100

/** The newest set of each id. */
export class NewestKeySets {
  readonly #sets = new Map<string, ReadKeySet>()

  get all(): ReadKeySet[] {
    return [...this.#sets.values()]
  }

  /** False if the one that is known is newer: answers may come late. */
  add(read: ReadKeySet): boolean {
    if ((this.#sets.get(read.id)?.begun ?? Number.NEGATIVE_INFINITY) > read.begun) return false
    this.#sets.delete(read.id)
    this.#sets.set(read.id, read)
    const [oldest = ''] = this.#sets.keys()
    if (this.#sets.size > MOST) this.#sets.delete(oldest)
    return true
  }

  take(id: string): ReadKeySet | undefined {
    const read = this.#sets.get(id)
    this.#sets.delete(id)
    return read
  }
}

const used = new Shared<KeySet>()
/** Sets that others have read and that are not used here yet. */
const known = new NewestKeySets()
let tellOthers: (read: ReadKeySet) => void = () => undefined

/** @param tell passes a set that was read here on to the other processes of this gateway */
export function shareKeySets(tell: (read: ReadKeySet) => void): void {
  tellOthers = tell
}

/** Another process has read a set. */
export function learnKeySet(read: ReadKeySet): void {
  const set = used.get(read.id)
  if (set === undefined) known.add(read)
  else set.learn(read.set, read.begun)
}

/** The keys at an address for one more user, who must release them. */
export function useKeySet(jwks: string, allowPrivate: boolean, log: Log): InUse<KeySet> {
  const id = `${jwks} ${allowPrivate}`
  return used.use(id, () => {
    const set = new KeySet(keySource(jwks, allowPrivate), nameOf(jwks), log, (keys, begun) =>
      tellOthers({ id, set: keys, begun }),
    )
    const learned = known.take(id)
    if (learned !== undefined) set.learn(learned.set, learned.begun)
    set.start()
    return set
  })
}
