/** Checks that all plans and environments named in projects, rows, rules and `unknownProject` are declared. Pure. */

import type { Path } from '../problem.js'
import { DECLARED_WORD } from '../schema/fields.js'
import { wrongValue } from '../sentences.js'
import type { FileFault, Readable } from '../types.js'
import { ENVIRONMENTS, PLANS, type PlanWords } from '../words/words.js'

/** True where projects.yaml declares other words than the spec's. */
export function hasOwnWords({ plans, environments }: PlanWords): boolean {
  return plans.join('/') !== PLANS.join('/') || environments.join('/') !== ENVIRONMENTS.join('/')
}

/** Reports every undeclared plan and environment where it is named, also in files with other faults. */
export function checkPlans(read: Readable, words: PlanWords): FileFault[] {
  const { gatewayFile, projectsFile, written } = read
  const checker = new Checker(read, words)
  checker.unknownProject()
  for (const [file, document] of written) {
    if (file === projectsFile) {
      eachOf(document, 'projects', (project, i) => checker.column(project, file, ['projects', i]))
    } else if (file !== gatewayFile) {
      eachOf(document, 'limits', (row, i) => {
        eachOf(row, 'for', (selector, j) => checker.selector(selector, file, ['limits', i, 'for', j]))
      })
      eachOf(document, 'rules', (rule, i) => {
        checker.selector(memberOf(rule, 'when'), file, ['rules', i, 'when'])
      })
    }
  }
  return checker.faults
}

class Checker {
  readonly faults: FileFault[] = []
  readonly #read: Readable
  readonly #words: PlanWords

  constructor(read: Readable, words: PlanWords) {
    this.#read = read
    this.#words = words
  }

  column(one: unknown, file: string, path: Path): void {
    this.#word(memberOf(one, 'plan'), this.#words.plans, file, [...path, 'plan'])
    this.#word(memberOf(one, 'environment'), this.#words.environments, file, [...path, 'environment'])
  }

  selector(selector: unknown, file: string, path: Path): void {
    for (const key of ['plans', 'environments'] as const) {
      eachOf(selector, key, (word, i) => this.#word(word, this.#words[key], file, [...path, key, i]))
    }
  }

  /** A plan by itself means the spec's production environment, so with custom words both must be named. */
  unknownProject(): void {
    const { gatewayFile: file, written } = this.#read
    const path = ['unknownProject']
    const setting = memberOf(written.get(file), 'unknownProject')
    if (setting === 'reject') return
    if (typeof setting !== 'string') this.column(setting, file, path)
    else if (!hasOwnWords(this.#words)) this.#word(setting, [...PLANS, 'reject'], file, path)
    else {
      const { plans, environments } = this.#words
      const message = `The plans and environments are your own (projects.yaml), so name both, such as { plan: ${plans[0]}, environment: ${environments[0]} }, or write reject.`
      this.faults.push({ file, path, message })
    }
  }

  /** Values that are empty or not text are reported by the schema. */
  #word(word: unknown, declared: readonly string[], file: string, path: Path): void {
    if (typeof word !== 'string' || !DECLARED_WORD.test(word) || declared.includes(word)) return
    const message = wrongValue(word, { enum: declared }, this.#read.variablesOf(file, path))
    this.faults.push({ file, path, message })
  }
}

function memberOf(holder: unknown, key: string): unknown {
  return typeof holder === 'object' && holder !== null
    ? (holder as Readonly<Record<string, unknown>>)[key]
    : undefined
}

function eachOf(holder: unknown, key: string, visit: (value: unknown, index: number) => void): void {
  const list = memberOf(holder, key)
  if (Array.isArray(list)) for (const [i, value] of list.entries()) visit(value, i)
}
