/** Creates or migrates the tables of the directory service's SQLite file. */
import type Database from 'libsql'
import { openVersion } from '../../storage/sqlite-version.js'
import type { Log } from '../log.js'
import { departedSchema } from './sqlite-departed.js'
import { eventSchema, laterColumns } from './sqlite-event-schema.js'
import { linkSchema } from './sqlite-links.js'
import { pullSchema } from './sqlite-pulls.js'
import { countOnce, sqliteSchema } from './sqlite-schema.js'
import { laterSetupLinkColumn, setupLinkSchema } from './sqlite-setup-links.js'

/** Version of the tables. Version 1 may lack the counts and the columns for several webhooks. */
export const VERSION = 2
const OLDEST = 1

/** Throws an Error with a sentence for a file of a version that this release cannot migrate. */
export function makeTables(db: Database.Database, file: string, say: Log['info']): void {
  const isNew = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'resources'").get() === undefined
  const migrate = (): void => {
    const counted = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'resource_counts'").get()
    db.exec([sqliteSchema, eventSchema, departedSchema, pullSchema, linkSchema, setupLinkSchema].join('\n'))
    if (counted === undefined) db.exec(countOnce)
    addLaterColumns(db)
  }
  openVersion({ db, file, version: VERSION, oldest: OLDEST, isNew, migrate, say })
}

function addLaterColumns(db: Database.Database): void {
  for (const { table, column, sql } of [...laterColumns, laterSetupLinkColumn]) {
    const columns = db.prepare(`PRAGMA table_info(${table})`).all() as { name: string }[]
    if (!columns.some(({ name }) => name === column)) db.exec(sql)
  }
}
