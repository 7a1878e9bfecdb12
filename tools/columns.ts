/** Plans and environments, as people name them. */

import { listed } from '../config/problem.js'
import { columnName, columnsOf, ENVIRONMENTS, PLANS } from '../config/words.js'

/** Every column of the tables, in the order of the plans. */
export const COLUMNS: readonly string[] = [...columnsOf([{}])]

/** `all plans in development and staging; developer in production`. */
export function describeColumns(columns: ReadonlySet<string>): string {
  const environments = new Map<string, string[]>()
  for (const environment of ENVIRONMENTS) {
    const plans = PLANS.filter(plan => columns.has(columnName(plan, environment)))
    if (plans.length === 0) continue
    const text = plans.length === PLANS.length ? 'all plans' : listed(plans, 'and')
    environments.set(text, [...(environments.get(text) ?? []), environment])
  }
  return [...environments].map(([plans, names]) => `${plans} in ${listed(names, 'and')}`).join('; ')
}

/** Those columns that look the same, together. */
export function groupColumns(textOf: (column: string) => string): Map<string, Set<string>> {
  const groups = new Map<string, Set<string>>()
  for (const column of COLUMNS) {
    const text = textOf(column)
    groups.set(text, (groups.get(text) ?? new Set()).add(column))
  }
  return groups
}
