/** `sluice keys list`: from the file, or with the last use of each key from a running gateway. */
import type { KeyList } from '../../gateway/admin/key-list.js'
import { Failure } from '../../gateway/errors.js'
import { type ApiKey, stateOf } from '../../gateway/identify/api-keys/key-file.js'
import { ask } from '../admin.js'
import type { Io } from '../io.js'
import { columns, minuteOf, table } from '../text.js'

const TITLES = ['id', 'project', 'name', 'begins with', 'state', 'created', 'expires', 'scopes']

/** The keys of the file, of one project or of all. */
export function listKeys(keys: readonly ApiKey[], project: string | undefined, json: boolean, io: Io): void {
  const now = Date.now()
  const shown = keys
    .filter(key => project === undefined || key.project === project)
    .map(key => ({ ...key, state: stateOf(key, now) }))
  if (json) io.out(`${JSON.stringify({ keys: shown.map(({ hash: _, ...key }) => key) })}\n`)
  else printKeys(TITLES, shown.map(cellsOf), io)
}

/** The keys as a running gateway knows them. @throws {Failure} when it cannot read them */
export async function listLiveKeys(
  where: string,
  project: string | undefined,
  json: boolean,
  io: Io,
): Promise<void> {
  const answer = await ask<KeyList>({ path: '/keys', query: { project } }, where, io)
  const { file, trouble, total, keys } = answer
  if (file === null) throw new Failure('That gateway has no "apiKeys" in gateway.yaml.')
  if (trouble !== null) throw new Failure(`${file}: ${trouble}`)
  if (json) {
    io.out(`${JSON.stringify(answer)}\n`)
    return
  }
  const rows = keys.map(key => [
    ...cellsOf({ ...key, expires: key.expires ?? undefined }),
    key.last_used === null ? 'not yet' : minuteOf(key.last_used),
  ])
  printKeys([...TITLES, 'last used'], rows, io)
  if (total > keys.length) io.err(`The first ${keys.length} of ${total}: name a --project.\n`)
}

type Listed = Pick<ApiKey, 'id' | 'project' | 'name' | 'prefix' | 'created' | 'scopes'> & {
  readonly state: string
  readonly expires?: string | undefined
}

function cellsOf({ id, project, name, prefix, state, created, expires, scopes }: Listed): string[] {
  const ends = expires === undefined ? 'never' : minuteOf(expires)
  return [id, project, name, `${prefix}…`, state, minuteOf(created), ends, scopes.join(' ')]
}

function printKeys(titles: readonly string[], rows: readonly (readonly string[])[], io: Io): void {
  io.out(rows.length === 0 ? 'No keys.\n' : table(columns(titles), rows, io.columns))
}
