import { maxNewTokens, maxSetupLinks } from '../../limits.js'
import type { LinkStore, SetupLink, SetupLinkStore } from '../contract.js'
import type { Sql } from './sql.js'

/** The table of one-time links; there are few at a time. */
export const linkSchema = `
CREATE TABLE consent_links (
  hash TEXT PRIMARY KEY, directory_id TEXT NOT NULL, until INTEGER NOT NULL
) WITHOUT ROWID;
`

/** One-time links in the embedded database. */
export function createLinkStore({ run, one, together }: Sql): LinkStore {
  return {
    addLink: async ({ hash, directoryId, until }, now) =>
      together(() => {
        run('DELETE FROM consent_links WHERE until <= ?', now)
        run('INSERT INTO consent_links VALUES (?, ?, ?)', hash, directoryId, until)
      }),
    async link(hash, now) {
      const row = one<{ directory_id: string; until: number }>(
        'SELECT directory_id, until FROM consent_links WHERE hash = ? AND until > ?',
        ...[hash, now],
      )
      return row && { hash, directoryId: row.directory_id, until: row.until }
    },
    takeLink: async (hash, now) =>
      run('DELETE FROM consent_links WHERE hash = ? AND until > ?', hash, now) === 1,
    async dropLinks(directoryId) {
      run('DELETE FROM consent_links WHERE directory_id = ?', directoryId)
    },
  }
}

/** The table of set-up links; there are few at a time. */
export const setupLinkSchema = `
CREATE TABLE setup_links (
  hash TEXT PRIMARY KEY, id TEXT NOT NULL, directory_id TEXT NOT NULL, created INTEGER NOT NULL,
  until INTEGER NOT NULL, shown INTEGER, made INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX setup_links_directory ON setup_links (directory_id, created, id);
`

interface Row {
  id: string
  hash: string
  directory_id: string
  created: number
  until: number
  shown: number | null
  made: number
}

const toLink = ({ directory_id: directoryId, shown, made, ...row }: Row): SetupLink => ({
  ...{ id: row.id, hash: row.hash, directoryId, created: row.created, until: row.until },
  ...(shown !== null && { shown }),
  ...(made > 0 && { made }),
})

/** Set-up links in the embedded database. */
export function createSetupLinkStore({ run, all, one, together }: Sql): SetupLinkStore {
  return {
    addSetupLink: async ({ hash, id, directoryId, created, until }, now) =>
      together(() => {
        run('DELETE FROM setup_links WHERE until <= ?', now)
        const held = one<{ n: number }>(
          'SELECT count(*) AS n FROM setup_links WHERE directory_id = ?',
          directoryId,
        )
        if (held && held.n >= maxSetupLinks) return false
        run(
          'INSERT INTO setup_links (hash, id, directory_id, created, until) VALUES (?, ?, ?, ?, ?)',
          ...[hash, id, directoryId, created, until],
        )
        return true
      }),
    async setupLink(hash, now) {
      const row = one<Row>('SELECT * FROM setup_links WHERE hash = ? AND until > ?', hash, now)
      return row && toLink(row)
    },
    setupLinks: async (directoryId, now) =>
      all<Row>(
        'SELECT * FROM setup_links WHERE directory_id = ? AND until > ? ORDER BY created, id',
        ...[directoryId, now],
      ).map(toLink),
    showOnce: async (hash, now) =>
      run(
        'UPDATE setup_links SET shown = ? WHERE hash = ? AND until > ? AND shown IS NULL',
        now,
        hash,
        now,
      ) === 1,
    countNewSecret: async (hash, now) =>
      run(
        'UPDATE setup_links SET made = made + 1 WHERE hash = ? AND until > ? AND made < ?',
        ...[hash, now, maxNewTokens],
      ) === 1,
    dropSetupLinks: async (directoryId, id) =>
      id === undefined
        ? run('DELETE FROM setup_links WHERE directory_id = ?', directoryId)
        : run('DELETE FROM setup_links WHERE directory_id = ? AND id = ?', directoryId, id),
  }
}
