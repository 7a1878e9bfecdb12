/** The counter that a hypothetical request would use; the parts of its key are given by name. */
import type { CounterName } from '../admin/inspect.js'
import type { Configuration } from '../configured/load.js'
import { PEEK_BYTES } from '../decide/email-or-flow.js'
import type { Question, Questions } from '../decide/question.js'
import { Unnamed } from '../errors.js'
import type { Outcome, Project, Rule } from '../types.js'
import { factsOf, headersOf, type Parts } from './facts.js'

/** The names that give each part of a key; headers are compared by their own names. */
const NAMES: Readonly<Record<string, readonly (keyof CounterName)[]>> = {
  project: ['project'],
  path: ['method', 'path'],
  'full-path': ['path'],
  'client-ip': ['ip'],
  method: ['method'],
  ja3: ['ja3'],
  ja4: ['ja4'],
  auth: ['auth'],
}

/** What must still be given to identify the rule's counter, in the order of its key. */
export function missingNames({ key }: Rule, given: Partial<CounterName>): string[] {
  const missing = key.flatMap((part): readonly string[] => {
    if (part === 'email-or-flow')
      return given.email === undefined && given.flow === undefined ? ['email or flow'] : []
    const isHeader = part === 'host' || part.startsWith('header:')
    if (!isHeader) return (NAMES[part] ?? []).filter(name => given[name] === undefined)
    const name = part.replace('header:', '')
    return headersOf(given).some(([one]) => one === name) ? [] : [`header (${name}: …)`]
  })
  return [...new Set(missing)]
}

/**
 * The question that such a request puts to the rule's counter; undefined if it has none.
 *
 * @throws {Unnamed} when such a request is impossible, or the rule does not look at its path
 */
export function questionOf(
  rule: Rule,
  {
    given,
    project,
    loaded,
    questions,
  }: { given: Parts; project: Project; loaded: Configuration; questions: Questions },
): Question | Outcome | undefined {
  const facts = factsOf(loaded, given)
  const { policy } = loaded.compiled
  // The counter exists whoever asks, even if the question leaves open what the rule's `when` needs.
  const found = policy.looking(facts).find(one => one.rule === rule)
  if (found === undefined && rule.key.includes('path')) {
    throw new Unnamed(`"${rule.id}" does not look at ${given.method} ${given.path}.`)
  }
  const bodyPrefix =
    given.email === undefined ? undefined : Buffer.from(String(new URLSearchParams({ email: given.email })))
  const matched = { rule, route: found?.route ?? '/' }
  const question = questions.of(
    matched,
    { facts, project, matched: [matched], bodyPrefix: bodyPrefix?.subarray(0, PEEK_BYTES) },
    0,
  )
  return question === 'skip' ? undefined : question
}
