/** Opens the overrides of a gateway: stored in Redis or in this process, or pushed by the process that stores them. */
import type { Log } from '../types.js'
import { journalIn, type OverrideJournal } from './override.js'
import { RedisOverrideStore } from './redis-store.js'
import { Runtime } from './runtime.js'
import { type Contents, EMPTY, memoryOverrideStore, type OverrideStore } from './store.js'
import { NO_TEXTS, readTexts, type Texts } from './stored-form.js'

export interface OpenOverrides {
  readonly store: OverrideStore
  readonly runtime: Runtime
}

export interface OverrideHooks {
  /** Called after each change, whoever made it, once it is in force in this process. */
  changed?(contents: Contents): void
  /** Called for each regular look at Redis that fails. */
  unanswered?(): void
}

/**
 * Resolves when what Redis holds is in force, or when Redis does not answer.
 *
 * @param redis its address; '' stores in this process
 */
export async function openOverrides(
  redis: string,
  log: Log,
  { changed = () => {}, unanswered = () => {} }: OverrideHooks = {},
): Promise<OpenOverrides> {
  const onChange = (): void => {
    runtime.changed()
    changed(store.contents)
  }
  const shared =
    redis === '' ? undefined : new RedisOverrideStore(redis, { changed: onChange, unanswered }, log)
  const store = shared ?? memoryOverrideStore(onChange)
  const runtime = new Runtime(store, journalIn(store))
  await shared?.opened()
  return { store, runtime }
}

/** For a process that gets the overrides from another one, by `receive`. */
export function followOverrides(journal: OverrideJournal, log: Log) {
  let last = { texts: NO_TEXTS, contents: EMPTY }
  const source = {
    get contents() {
      return last.contents
    },
  }
  const runtime = new Runtime(source, journal)
  return {
    runtime,
    receive(texts: Texts): void {
      last = { texts, contents: readTexts(texts, last, log) }
      runtime.changed()
    },
  }
}
