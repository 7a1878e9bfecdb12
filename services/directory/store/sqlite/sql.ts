import type { Scope } from '../../model.js'

/** The embedded database as the parts of its adapter use it. Prepared statements are cached by their text. */
export interface Sql {
  /** Returns the number of rows changed. */
  run(sql: string, ...values: unknown[]): number
  all<Row>(sql: string, ...values: unknown[]): Row[]
  one<Row>(sql: string, ...values: unknown[]): Row | undefined
  /** Runs the work as one write transaction, and returns its result. */
  together<Result>(work: () => Result): Result
}

/** Deletes a user or group with its lookup terms and memberships. */
export function deleteResource(sql: Sql, id: string): void {
  const { run } = sql
  deleteTerms(sql, id)
  run('DELETE FROM resources WHERE id = ?', id)
  run('DELETE FROM memberships WHERE group_id = ?', id)
  run('DELETE FROM memberships WHERE user_id = ?', id)
}

/** Deletes the lookup terms of a user or group. */
export function deleteTerms({ run }: Sql, id: string): void {
  run(
    `DELETE FROM terms WHERE (directory_id, type, term, resource) IN (
       SELECT r.directory_id, r.type, value, r.number FROM resources AS r, json_each(r.terms) WHERE r.id = ?)`,
    id,
  )
}

/** The WHERE condition of a scope, with its values. */
export function scoped(scope: Scope): { where: string; values: string[] } {
  return 'directoryId' in scope
    ? { where: 'directory_id = ?', values: [scope.directoryId] }
    : { where: 'tenant = ? AND product = ?', values: [scope.tenant, scope.product] }
}
