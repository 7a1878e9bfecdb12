import { join } from 'node:path'
import type { Store } from './contract.js'

/** The embedded database's file in the data folder. */
export const databaseFile = (dataDir: string): string => join(dataDir, 'directory.db')

/** Opens the database that is set; only its driver is loaded. Throws an Error with a sentence. */
export async function openStore({
  mongodbUrl,
  dataDir,
}: {
  /** Empty: SQLite in `dataDir`. */
  readonly mongodbUrl: string
  readonly dataDir: string
}): Promise<Store> {
  if (mongodbUrl !== '') return (await import('./mongodb.js')).openMongodb(mongodbUrl)
  const { openSqlite } = await import('./sqlite.js')
  try {
    return openSqlite(databaseFile(dataDir))
  } catch (error) {
    throw new Error(`DATA_DIR ${dataDir}: directory.db cannot be opened: ${(error as Error).message}`)
  }
}
