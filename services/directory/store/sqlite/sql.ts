import type { DirectoryScope, ListPage, Scope } from '../../model.js'

/** The embedded database as the parts of its adapter use it. Prepared statements are cached by their text. */
export interface Sql {
  /** Returns the number of rows changed. */
  run(sql: string, ...values: unknown[]): number
  all<Row>(sql: string, ...values: unknown[]): Row[]
  /** The driver adds `_metadata` to the row, so `all` reads rows that are passed on whole. */
  one<Row>(sql: string, ...values: unknown[]): Row | undefined
  /** Runs the work as one write transaction, and returns its result. */
  together<Result>(work: () => Result): Result
}

/** Inserts a row; of one with the same key it changes these columns. */
export function put(
  { run }: Sql,
  table: string,
  row: Readonly<Record<string, string | number | null>>,
  { key, changes }: { readonly key: string; readonly changes: readonly string[] },
): void {
  const names = Object.keys(row)
  run(
    `INSERT INTO ${table} (${names.join()}) VALUES (${names.map(() => '?').join()})
     ON CONFLICT (${key}) DO UPDATE SET ${changes.map(name => `${name} = excluded.${name}`).join()}`,
    ...Object.values(row),
  )
}

/** A WHERE condition, with its values. */
export interface SqlCondition {
  readonly where: string
  readonly values: readonly unknown[]
}

export function scoped(scope: Scope | DirectoryScope | 'all'): SqlCondition {
  if (scope === 'all') return { where: 'TRUE', values: [] }
  if ('directoryId' in scope) return { where: 'directory_id = ?', values: [scope.directoryId] }
  const { tenant, product } = scope
  return tenant === undefined
    ? { where: 'product = ?', values: [product] }
    : { where: 'tenant = ? AND product = ?', values: [tenant, product] }
}

/** The rows of a page in the order of creation, then id; with `newestBy`, by this time with the newest first. */
export function page<Row>(
  { all }: Sql,
  select: string,
  { where, values }: SqlCondition,
  { after, offset, limit }: ListPage,
  newestBy?: 'created' | 'failed',
): Row[] {
  const time = newestBy ?? 'created'
  const [beyond, way] = newestBy ? ['<', 'DESC'] : ['>', 'ASC']
  return all<Row>(
    `${select} WHERE ${where} ${after ? `AND (${time}, id) ${beyond} (?, ?)` : ''}
     ORDER BY ${time} ${way}, id ${way} LIMIT ? OFFSET ?`,
    ...[...values, ...(after ? [after.created, after.id] : []), limit, offset],
  )
}
