/** Columns of the tables of limits, each a plan in an environment: groups of them, and what they are called. */
import { listed } from '../problem.js'
import { columnName, columnsOf, type PlanWords } from '../words/words.js'

/** Longer lists of plans are shortened to their number and the first few names. */
const MOST_NAMED = 6
const FIRST_NAMED = 3
const NUMBERS = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten']

/**
 * Describes columns in one line, however many there are:
 * `all plans in development and staging; developer in production`,
 * `all environments of five plans (a, b, c, d and e)`.
 */
export function describeColumns(columns: ReadonlySet<string>, { plans, environments }: PlanWords): string {
  const byPlans = new Map<string, { readonly plans: readonly string[]; readonly environments: string[] }>()
  for (const environment of environments) {
    const here = plans.filter(plan => columns.has(columnName(plan, environment)))
    if (here.length === 0) continue
    const text = here.join('/')
    const group = byPlans.get(text) ?? { plans: here, environments: [] }
    group.environments.push(environment)
    byPlans.set(text, group)
  }
  return [...byPlans.values()]
    .map(group => {
      if (group.plans.length === plans.length) return `all plans in ${listed(group.environments, 'and')}`
      return group.environments.length === environments.length && environments.length > 1
        ? `all environments of ${countedPlans(group.plans)}`
        : `${namedPlans(group.plans)} in ${listed(group.environments, 'and')}`
    })
    .join('; ')
}

function namedPlans(plans: readonly string[]): string {
  return plans.length > MOST_NAMED ? countedPlans(plans) : listed(plans, 'and')
}

function countedPlans(plans: readonly string[]): string {
  if (plans.length <= FIRST_NAMED) return listed(plans, 'and')
  const named =
    plans.length > MOST_NAMED ? [...plans.slice(0, FIRST_NAMED), `${plans.length - FIRST_NAMED} more`] : plans
  return `${NUMBERS[plans.length] ?? plans.length} plans (${listed(named, 'and')})`
}

/** Groups columns with the same text, in the order of the plans. */
export function groupColumns(words: PlanWords, textOf: (column: string) => string): Map<string, Set<string>> {
  const groups = new Map<string, Set<string>>()
  for (const column of columnsOf([{}], words)) {
    const text = textOf(column)
    groups.set(text, (groups.get(text) ?? new Set()).add(column))
  }
  return groups
}

/** The words of two configurations, those of the first before others. */
export function bothWords(one: PlanWords, other: PlanWords): PlanWords {
  return {
    plans: [...new Set([...one.plans, ...other.plans])],
    environments: [...new Set([...one.environments, ...other.environments])],
  }
}
