/**
 * What the admin port reports about policy and counters, and how it resets one. The policy is read from the tables that
 * requests are matched by.
 */

import { listed, unknownName } from '../../config/problem.js'
import type { Gateway } from '../../config/schema/gateway.js'
import type { CounterName, Inspected, PolicyOf } from '../admin/inspect.js'
import type { OverrideReason } from '../admin/settable.js'
import { placeOf } from '../compiled-rule.js'
import type { Configuration } from '../configured/load.js'
import { projectOf } from '../configured/projects.js'
import type { Counters } from '../decide/dry-run.js'
import type { HeldSlots, Slots } from '../decide/held-slots.js'
import type { Questions } from '../decide/question.js'
import { NotFound, Unnamed, Unreachable } from '../errors.js'
import { logOverride, newOverride, type OverrideJournal } from '../overrides/override.js'
import { methodsOf } from '../policy/policy.js'
import { bucketRuleOf } from '../policy/shares-and-trials.js'
import type { Log, Project, Rule } from '../types.js'
import { countersOf } from './counters.js'
import { explainedForNow } from './explained.js'
import { missingNames, questionOf } from './named-counter.js'

export interface InspectOptions extends ResetOptions {
  readonly counters: Counters
  readonly held: HeldSlots
}

/** The most that one answer lists. */
export const MOST_SLOTS = 1000

/** What one process reports. */
export interface Inspection extends Inspected {
  slots(): Slots
  reset(name: CounterName, reason: OverrideReason & { readonly from: string }): Promise<Reset>
}

/** Each answer is about the configuration in force at the time. */
export function inspect(options: InspectOptions): Inspection {
  const { loaded, counters, held } = options
  return {
    policy: of => policyOf(loaded(), of),
    counters: (id, parts) => countersOf(loaded(), counters, id, parts),
    slots: () => held.oldest(MOST_SLOTS),
    reset: (name, reason) => reset(name, reason, options),
  }
}

/** URLs of the embedded services' documents behind the data port at `url`; empty before that port listens. */
export function serviceDocuments({ upstreams }: Gateway, url: string): Record<string, string> {
  if (url === '') return {}
  const served = Object.values(upstreams).flatMap(one => ('embedded' in one ? [one.embedded] : []))
  return Object.fromEntries(
    Object.entries(DOCUMENTS)
      .filter(([service]) => served.includes(service))
      .map(([service, path]) => [service, url + path]),
  )
}

const DOCUMENTS = { directory: '/api/v1/docs' }

/** The answer to `GET /policy`. @throws {NotFound} */
export function policyOf(loaded: Configuration, of: PolicyOf): object {
  const { policy } = loaded.compiled
  const project = 'project' in of ? projectOf(loaded, of.project) : undefined
  const { plan, environment } = project ?? columnAsked(loaded, of as Omit<Project, 'id'>)
  const patterns = new Map(policy.buckets.map(bucket => [bucket.name, bucket.patterns]))
  const table = policy.tableOf({ id: project?.id ?? '', plan, environment })
  const buckets = [...(table?.rules.values() ?? [])].map(rule => ({
    bucket: rule.id,
    patterns: patterns.get(rule.id) ?? [],
    ...modeOf(rule),
    ...rule.config,
    onStoreError: rule.onStoreError,
    src: placeOf(rule.source),
  }))
  const rules = policy.rules.map(({ rule, match, when }) => ({
    methods: methodsOf({ rule, match }),
    rule: rule.id,
    kind: rule.kind,
    ...modeOf(rule),
    match,
    key: rule.key,
    missing: rule.missing,
    onStoreError: rule.onStoreError,
    when: when ?? null,
    reads: rule.reads ?? false,
    settings: rule.config,
    src: placeOf(rule.source),
  }))
  return { revision: policy.revision, project: project?.id ?? null, plan, environment, buckets, rules }
}

/** @throws {NotFound} for words that projects.yaml does not declare */
function columnAsked({ config }: Configuration, asked: Omit<Project, 'id'>): Omit<Project, 'id'> {
  const { plans, environments } = config.planWords
  const check = (what: string, word: string, words: readonly string[]) => {
    if (!words.includes(word)) throw new NotFound(unknownName(what, word, new Set(words)))
  }
  check('plan', asked.plan, plans)
  check('environment', asked.environment, environments)
  return asked
}

function modeOf(rule: Rule) {
  const share = rule.share && { enforceFor: `${rule.share.percent}%` }
  return { mode: rule.mode, ...explainedForNow(rule), ...share }
}

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
