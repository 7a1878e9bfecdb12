import type { StoreFault } from '../../storage/health.js'
import { type AppliedChange, type Store, StoreFailed } from './contract.js'

/** Called on each failure; the cause is for the log. */
export type ReportFault = (fault: StoreFault, cause: string) => void

const messages: Readonly<Record<StoreFault, string>> = {
  full: 'The database has no room left; try again later.',
  failing: 'The database cannot write to its disk, or read from it; try again later.',
  busy: 'The database is busy; try again.',
  locked: 'The database is read-only; try again later.',
  away: 'The database cannot be reached; try again.',
}

/**
 * The store, with StoreFailed for errors that `faultOf` recognises as faults of the database itself; each is reported
 * to `reportFault`.
 */
export function guarded(
  store: Store,
  faultOf: (error: unknown) => StoreFault | undefined,
  reportFault: ReportFault,
): Store {
  const explain = (error: unknown): never => {
    const fault = faultOf(error)
    if (fault === undefined) throw error
    reportFault(fault, error instanceof Error ? error.message : String(error))
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
  const guardDurable = ({ durable }: AppliedChange): AppliedChange => {
    const explained = durable.catch(explain)
    // Like `durable` itself, this causes no unhandled rejection if nobody awaits it.
    explained.catch(() => undefined)
    return { durable: explained }
  }
  return {
    ...others,
    commit: async (...change) => {
      const made = await commit(...change)
      return made && guardDurable(made)
    },
    // The recovery check already knows that the database has failed.
    restore: () => store.restore(),
  }
}
