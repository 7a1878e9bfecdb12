import type { StoreFault } from '../../storage/health.js'
import { type Made, type Store, StoreFailed } from './contract.js'

/** Hears of each failure, with its cause for the log. */
export type TellFault = (fault: StoreFault, cause: string) => void

const messages: Readonly<Record<StoreFault, string>> = {
  full: 'The database has no room left; try again later.',
  failing: 'The database cannot write to its disk, or read from it; try again later.',
  busy: 'The database is busy; try again.',
  locked: 'The database is read-only; try again later.',
  away: 'The database cannot be reached; try again.',
}

/** The store, with StoreFailed for what `faultOf` knows as a fault of the database itself; each is told of. */
export function guarded(
  store: Store,
  faultOf: (error: unknown) => StoreFault | undefined,
  tell: TellFault,
): Store {
  const explain = (error: unknown): never => {
    const fault = faultOf(error)
    if (fault === undefined) throw error
    tell(fault, error instanceof Error ? error.message : String(error))
    throw new StoreFailed(messages[fault], { cause: error })
  }
  const methods = Object.entries(store).map(([name, method]) => {
    const guard = async (...values: unknown[]): Promise<unknown> => {
      try {
        return await (method as (...values: unknown[]) => Promise<unknown>)(...values)
      } catch (error) {
        return explain(error)
      }
    }
    return [name, guard]
  })
  const { commit, ...others } = Object.fromEntries(methods) as Store
  const keep = ({ kept }: Made): Made => {
    const explained = kept.catch(explain)
    // As `kept` itself: who does not wait for it is not surprised by it.
    explained.catch(() => undefined)
    return { kept: explained }
  }
  return {
    ...others,
    commit: async (...change) => {
      const made = await commit(...change)
      return made && keep(made)
    },
    // Who asks whether it works again knows that it does not.
    restore: () => store.restore(),
  }
}
