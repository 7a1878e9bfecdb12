/** The access entries that the admin port was told of, as requests look them up. */
import { type AccessTable, NO_ACCESS, AccessTable as Table } from '../../policy/access.js'
import type { Log } from '../../types.js'
import { compiledEntry } from './entry.js'
import { type Kept, keptHere } from './kept.js'
import { KeptInRedis } from './kept-in-redis.js'

export interface RuntimeAccess {
  /** What is in force now. */
  readonly table: AccessTable
  readonly kept: Kept
}

/** Opens it; what Redis holds is in force when this resolves, unless it does not answer. `redis` is its address, or empty. */
export async function openRuntimeAccess(redis: string, log: Log): Promise<RuntimeAccess> {
  let table = NO_ACCESS
  const changed = () => {
    table = new Table([...kept.entries.values()].map(compiledEntry))
  }
  const shared = redis === '' ? undefined : new KeptInRedis(redis, () => changed(), log)
  const kept: Kept = shared ?? keptHere(changed)
  await shared?.opened()
  return {
    get table() {
      return table
    },
    kept,
  }
}
