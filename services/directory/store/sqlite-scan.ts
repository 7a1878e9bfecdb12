import type { Scan } from './contract.js'
import type { Sql } from './sql.js'
import type { ResourceRow } from './sqlite-schema.js'

/** A page of all resources of a type in a directory. */
export function scanAll({ all }: Sql, { directoryId, type, after, limit }: Scan): ResourceRow[] {
  return all<ResourceRow>(
    `SELECT * FROM resources WHERE directory_id = ? AND type = ? ${after ? 'AND (created, id) > (?, ?)' : ''}
     ORDER BY created, id LIMIT ?`,
    ...[directoryId, type],
    ...(after ? [after.created, after.id] : []),
    limit,
  )
}

/**
 * A page of the resources with any of the terms. Each term is queried separately, in the order of its index, which is
 * that of row numbers and so of creation: a page costs the same however many resources have a term.
 */
export function scanTerms(
  { all }: Sql,
  { directoryId, type, after, limit }: Scan,
  terms: readonly string[],
): ResourceRow[] {
  const beyond = after ? numberAfter() : 0
  const numbers = new Set<number>()
  for (const term of new Set(terms)) {
    const found = all<{ resource: number }>(
      `SELECT resource FROM terms WHERE directory_id = ? AND type = ? AND term = ? AND resource >= ?
       ORDER BY resource LIMIT ?`,
      ...[directoryId, type, term, beyond, limit],
    )
    for (const { resource } of found) numbers.add(resource)
  }
  const first = [...numbers].sort((a, b) => a - b).slice(0, limit)
  return all<ResourceRow>(
    'SELECT * FROM resources WHERE number IN (SELECT value FROM json_each(?)) ORDER BY number',
    JSON.stringify(first),
  )

  /** The lowest number that may come next; the resource that `after` names may have been deleted. */
  function numberAfter(): number {
    const own = all<{ number: number }>('SELECT number FROM resources WHERE id = ?', after?.id)[0]
    if (own) return own.number + 1
    const next = all<{ number: number }>(
      `SELECT number FROM resources WHERE directory_id = ? AND type = ? AND (created, id) > (?, ?)
       ORDER BY created, id LIMIT 1`,
      ...[directoryId, type, after?.created, after?.id],
    )[0]
    return next?.number ?? Number.MAX_SAFE_INTEGER
  }
}
