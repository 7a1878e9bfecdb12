import type { LinkStore } from './link-contract.js'
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
