/** The columns of the tables of limits: each is a plan in an environment. */
import { columnsOf, type PlanWords } from '../../config/words/words.js'

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
