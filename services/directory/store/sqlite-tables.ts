/** Creates or migrates the tables of the directory service's SQLite file. */
import type Database from 'libsql'
import { openVersion } from '../../storage/sqlite-version.js'
import type { Log } from '../log.js'
import type { JsonObject } from '../model.js'
import { termsOf } from '../scim/terms.js'
import { departedSchema } from './sqlite-departed.js'
import { eventSchema, laterColumns } from './sqlite-event-schema.js'
import { linkSchema } from './sqlite-links.js'
import { pullSchema } from './sqlite-pulls.js'
import { countOnce, laterMembershipColumn, sqliteSchema } from './sqlite-schema.js'
import { laterSetupLinkColumn, setupLinkSchema } from './sqlite-setup-links.js'

/**
 * Version of the tables. Version 1 may lack the counts and the columns for several webhooks; up to 2 user names were
 * looked up by their lower case alone, and the `display` of members was not kept.
 */
export const VERSION = 3
const OLDEST = 1

/** Throws an Error with a sentence for a file of a version that this release cannot migrate. */
export function makeTables(db: Database.Database, file: string, say: Log['info']): void {
  const isNew = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'resources'").get() === undefined
  const migrate = (): void => {
    const counted = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'resource_counts'").get()
    db.exec([sqliteSchema, eventSchema, departedSchema, pullSchema, linkSchema, setupLinkSchema].join('\n'))
    if (counted === undefined) db.exec(countOnce)
    addLaterColumns(db)
    renewTerms(db)
  }
  openVersion({ db, file, version: VERSION, oldest: OLDEST, isNew, migrate, say })
}

function addLaterColumns(db: Database.Database): void {
  for (const { table, column, sql } of [...laterColumns, laterSetupLinkColumn, laterMembershipColumn]) {
    const columns = db.prepare(`PRAGMA table_info(${table})`).all() as { name: string }[]
    if (!columns.some(({ name }) => name === column)) db.exec(sql)
  }
}

/** Makes the lookup terms of users anew where they differ from those of this release. */
function renewTerms(db: Database.Database): void {
  const users = db.prepare(
    "SELECT number, directory_id AS directory, raw, terms FROM resources WHERE type = 'user'",
  )
  const stale: { number: number; directory: string; before: string[]; after: string[] }[] = []
  for (const row of users.iterate()) {
    const { number, directory, raw, terms } = row as Record<'directory' | 'raw' | 'terms', string> & {
      number: number
    }
    const after = termsOf({ raw: JSON.parse(raw) as JsonObject })
    if (JSON.stringify(after) !== terms) stale.push({ number, directory, before: JSON.parse(terms), after })
  }
  const remove = db.prepare(
    "DELETE FROM terms WHERE directory_id = ? AND type = 'user' AND term = ? AND resource = ?",
  )
  const add = db.prepare("INSERT OR IGNORE INTO terms VALUES (?, 'user', ?, ?)")
  const keep = db.prepare('UPDATE resources SET terms = ? WHERE number = ?')
  for (const { number, directory, before, after } of stale) {
    for (const term of before) remove.run(directory, term, number)
    for (const term of after) add.run(directory, term, number)
    keep.run(JSON.stringify(after), number)
  }
}
