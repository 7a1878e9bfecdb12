import { join } from 'node:path'
import { loadAdapter } from '../../storage/driver.js'
import type { Store } from './contract.js'
import type { ReportFault } from './guarded.js'

/** The embedded database's file in the data folder. */
export const databaseFile = (dataDir: string): string => join(dataDir, 'directory.db')

/** Opens the configured database; only its driver is loaded. Throws an Error with a sentence. */
export async function openStore({
  mongodbUrl,
  dataDir,
  reportFault,
}: {
  /** Empty: SQLite in `dataDir`. */
  readonly mongodbUrl: string
  readonly dataDir: string
  readonly reportFault?: ReportFault
}): Promise<Store> {
  if (mongodbUrl !== '') {
    const { openMongodb } = await loadAdapter('mongodb', () => import('./mongodb/store.js'))
    return openMongodb(mongodbUrl, { reportFault })
  }
  const { openSqlite } = await loadAdapter('libsql', () => import('./sqlite/store.js'))
  try {
    return openSqlite(databaseFile(dataDir), { reportFault })
  } catch (error) {
    throw new Error(`DATA_DIR ${dataDir}: directory.db cannot be opened: ${(error as Error).message}`)
  }
}
