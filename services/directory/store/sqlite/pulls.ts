import type { PullState, PullStore } from '../contract.js'
import type { Sql } from './sql.js'

/** The table of directories that are pulled. `state` is the JSON text of a PullState; `started` is epoch ms. */
export const pullSchema = `
CREATE TABLE pulls (
  directory_id TEXT PRIMARY KEY, fence INTEGER NOT NULL DEFAULT 0, until INTEGER NOT NULL DEFAULT 0,
  started INTEGER NOT NULL DEFAULT 0, state TEXT
) WITHOUT ROWID;
`

interface PullRow {
  directory_id: string
  fence: number
  until: number
  started: number
  state: string | null
}

/** Pulls in the embedded database. */
export function createPullStore({ run, all, one, together }: Sql): PullStore {
  return {
    async enlistPull(directoryId) {
      run('INSERT INTO pulls (directory_id) VALUES (?) ON CONFLICT DO NOTHING', directoryId)
    },
    pulledDirectories: async () =>
      all<PullRow>('SELECT directory_id FROM pulls ORDER BY directory_id').map(row => row.directory_id),
    claimPull: async (directoryId, { now, until, idleSince = now }) =>
      together(() => {
        const row = one<PullRow>('SELECT * FROM pulls WHERE directory_id = ?', directoryId)
        if (!row || row.until > now || row.started > idleSince) return undefined
        const fence = row.fence + 1
        run(
          'UPDATE pulls SET fence = ?, until = ?, started = ? WHERE directory_id = ?',
          ...[fence, until, now, directoryId],
        )
        return fence
      }),
    reportPull: async (directoryId, fence, { until, state }) =>
      run(
        'UPDATE pulls SET until = ?, state = ? WHERE directory_id = ? AND fence = ?',
        ...[until, JSON.stringify(state), directoryId, fence],
      ) === 1,
    pullStates: async directoryIds =>
      new Map(
        all<PullRow>(
          'SELECT * FROM pulls WHERE directory_id IN (SELECT value FROM json_each(?))',
          JSON.stringify(directoryIds),
        ).flatMap(({ directory_id, until, state }) =>
          state ? [[directory_id, { state: JSON.parse(state) as PullState, until }]] : [],
        ),
      ),
  }
}
