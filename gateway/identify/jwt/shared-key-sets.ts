/** Key sets by their address: those of one process, and what the processes of a gateway tell each other, so that all trust the same keys. */
import type { Log } from '../../types.js'
import { Newest, type Read } from '../newest.js'
import { type InUse, Shared } from '../shared.js'
import { KeySet } from './key-set.js'
import { keySource, nameOf } from './key-source.js'
import type { Keys } from './token.js'

/** A set that a process has read. */
export interface ReadKeySet extends Read {
  readonly set: Keys
}

/** Sets that were read, here or by others, and are not used here, or not yet. */
const known = new Newest<ReadKeySet>()
/** What was in force stays known: a later configuration may use it while the issuer is away. */
const used = new Shared<KeySet>(({ inForce }, id) => void (inForce && known.add({ id, ...inForce })))
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
