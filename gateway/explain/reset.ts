/** Resets one counter, and logs it. */
import { listed } from '../../config/problem.js'
import type { CounterName } from '../admin/inspect.js'
import type { OverrideReason } from '../admin/overrides.js'
import type { Configuration } from '../configured/load.js'
import { projectOf } from '../configured/projects.js'
import type { Counters } from '../decide/dry-run.js'
import type { Questions } from '../decide/question.js'
import { NotFound, Unnamed, Unreachable } from '../errors.js'
import { logOverride, newOverride, type OverrideJournal } from '../overrides/override.js'
import { bucketRuleOf } from '../policy/shares-and-trials.js'
import type { Log, Project, Rule } from '../types.js'
import { missingNames, questionOf } from './named-counter.js'

/** A counter that was reset: its rule and its key. */
export interface Reset {
  readonly reset: string
  readonly key: string
}

export interface ResetOptions {
  /** The configuration in force. */
  loaded(): Configuration
  readonly counters: Pick<Counters, 'questions'>
  /** Forgets what was counted by a key; rejects when the store cannot be reached. */
  forget(key: string): Promise<void>
  /** How logs and lists call a project. */
  shownAs(project: Project): string
  readonly journal: OverrideJournal
  readonly log: Log
}

/** Serves `DELETE /counters/{rule}` for the address `from`. @throws {NotFound} {Unnamed} {Unreachable} */
export async function reset(
  name: CounterName,
  { from, ...reason }: OverrideReason & { readonly from: string },
  { loaded, counters, forget, journal, shownAs, log }: ResetOptions,
): Promise<Reset> {
  const { rule, key, project } = counterOf(name, loaded(), counters.questions)
  const shown = project && shownAs(project)
  const whose = shown === undefined ? '' : ` of project ${shown}`
  const override = newOverride('reset', `Reset: a counter of "${rule.id}"${whose}.`, { ...reason, from })
  // Recorded first, because a record can be withdrawn.
  await journal.record(override)
  try {
    await forget(key)
  } catch (error) {
    await journal.withdraw(override.id).catch(() => undefined)
    throw new Unreachable('Redis does not answer: the counter is unchanged.', { cause: error })
  }
  const said = { rule: rule.id, project: shown ?? null, why: reason.why ?? null }
  logOverride(log, 'counter-reset', override, said, 'A counter was reset by the admin API')
  return { reset: rule.id, key }
}

function counterOf(
  name: CounterName,
  loaded: Configuration,
  questions: Questions,
): { rule: Rule; key: string; project: Project | undefined } {
  const { policy } = loaded.compiled
  const project = name.project === undefined ? undefined : projectOf(loaded, name.project)
  const bucket = project && bucketRuleOf(policy.tableOf(project), name.rule)
  const rule = bucket ?? policy.rules.find(one => one.rule.id === name.rule)?.rule
  if (rule === undefined) {
    const help = project === undefined ? ' Name the project of a bucket.' : ''
    throw new NotFound(`There is no bucket or rule "${name.rule}" here.${help}`)
  }
  const missing = missingNames(rule, name)
  if (missing.length > 0)
    throw new Unnamed(`Give ${listed(missing, 'and')}: "${rule.id}" counts by ${listed(rule.key, 'and')}.`)
  const question = questionOf(rule, { given: name, project: project ?? NOBODY, loaded, questions })
  if (question === undefined || !('demand' in question)) {
    throw new Unnamed(`Such a request has no counter of "${rule.id}".`)
  }
  return { rule, key: question.key, project }
}

const NOBODY: Project = { id: 'nobody', plan: 'developer', environment: 'production' }
