import { join } from 'node:path'
import { loadAdapter } from '../../storage/driver.js'
import type { StoreFault } from '../../storage/health.js'
import { sqliteFault } from '../../storage/sqlite.js'
import { type AppliedChange, type Store, StoreFailed } from './contract.js'

/** The embedded database's file in the data folder. */
export const databaseFile = (dataDir: string): string => join(dataDir, 'directory.db')

/** Opens the configured database; only its driver is loaded. Throws an Error with a sentence. */
export async function openStore({
  mongodbUrl,
  dataDir,
  reportFault = () => undefined,
}: {
  /** Empty: SQLite in `dataDir`. */
  readonly mongodbUrl: string
  readonly dataDir: string
  readonly reportFault?: ReportFault
}): Promise<Store> {
  if (mongodbUrl !== '') {
    const { openMongodb, mongodbFault } = await loadAdapter('mongodb', () => import('./mongodb/store.js'))
    return guarded(await openMongodb(mongodbUrl), mongodbFault, reportFault)
  }
  const { openSqlite } = await loadAdapter('libsql', () => import('./sqlite/store.js'))
  try {
    return guarded(openSqlite(databaseFile(dataDir)), sqliteFault, reportFault)
  } catch (error) {
    throw new Error(`DATA_DIR ${dataDir}: directory.db cannot be opened: ${(error as Error).message}`)
  }
}

/** Called on each failure; the cause is for the log. */
type ReportFault = (fault: StoreFault, cause: string) => void

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
function guarded(
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
