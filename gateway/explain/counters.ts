/** What a project has used of its limits, read from the counters that requests use. */

import { setImmediate } from 'node:timers/promises'
import { placeOf } from '../compiled-rule.js'
import type { Configuration } from '../configured/load.js'
import { projectOf } from '../configured/projects.js'
import type { Counters } from '../decide/dry-run.js'
import { outcomeOf, type Question } from '../decide/question.js'
import { chargeOf } from '../decide/store/meters.js'
import { type Answer, costOf } from '../decide/store/store.js'
import type { Project, Rule } from '../types.js'
import type { Reading } from '../verdict.js'
import { explainedCounter, explainedForNow } from './explained.js'
import { missingNames, type Parts, questionOf } from './named-counter.js'

/** Counters that are read at once before requests get their turn. */
const AT_ONCE = 20

/** The answer to `GET /projects/{id}/counters`; nothing is charged. @throws {NotFound} {Unnamed} */
export async function countersOf(
  loaded: Configuration,
  counters: Counters,
  id: string,
  given: Parts = {},
): Promise<object> {
  const { policy } = loaded.compiled
  const project = projectOf(loaded, id)
  const table = policy.tableOf(project)
  const buckets = [...(table?.rules.values() ?? []), ...(table?.trials?.values() ?? [])]
  const others = policy.rules.map(({ rule }) => rule)
  const isNamed = (rule: Rule) => missingNames(rule, { ...given, project: id }).length === 0
  const looked = [...buckets, ...others].filter(isNamed)
  const entries = await inTurns(looked, rule => countersOfRule(rule, { loaded, counters, project, given }))
  return {
    project: id,
    plan: project.plan,
    environment: project.environment,
    counters: entries,
    // These rules have a counter for each key, so the query must give the parts of one.
    not_shown: [...buckets, ...others].filter(rule => !isNamed(rule)).map(rule => rule.id),
  }
}

/** Reads a few counters at once. */
export async function inTurns<From, To>(
  list: readonly From[],
  read: (one: From) => To | Promise<To>,
): Promise<To[]> {
  const results: To[] = []
  for (let from = 0; from < list.length; from += AT_ONCE) {
    results.push(...(await Promise.all(list.slice(from, from + AT_ONCE).map(read))))
    // Lets requests go first, and the answers of Redis that they wait for.
    await setImmediate()
  }
  return results
}

interface Look {
  readonly loaded: Configuration
  readonly counters: Counters
  readonly project: Project
  readonly given: Parts
}

async function countersOfRule(rule: Rule, { loaded, counters, project, given }: Look): Promise<object> {
  const question = questionOf(rule, { given, project, loaded, questions: counters.questions })
  const isCounted = question !== undefined && 'demand' in question
  const look = isCounted ? await lookAt(question, counters) : undefined
  return {
    rule: rule.id,
    kind: rule.kind,
    mode: question?.rule.mode ?? rule.mode,
    ...explainedForNow(rule),
    src: placeOf(rule.source),
    store: look?.store ?? null,
    counters: (look?.readings ?? []).map(explainedCounter),
  }
}

/** What has been counted so far: a dry run includes one more request, which is subtracted. */
export async function lookAt(
  question: Question,
  { store }: Counters,
): Promise<{ store: Answer['store']; readings: Reading[] }> {
  const [[answer], [open]] = (await Promise.all([
    store.peek([question]),
    question.demand.kind === 'meter'
      ? store.peek([{ ...question, demand: { ...question.demand, quota: ENOUGH } }])
      : [undefined],
  ])) as [[Answer], [Answer | undefined]]
  const readings = outcomeOf(question, answer).readings.map(reading => {
    const used = usedWithout(spentBy(question), open ?? answer, open?.counts[0] ?? reading)
    return { ...reading, used, left: used === undefined ? undefined : Math.max(0, reading.quota - used) }
  })
  return { store: answer.store, readings }
}

/** A meter's first refusal counts as used, so its counter is read with a quota that never refuses. */
const ENOUGH = 2_000_000_000

function spentBy({ demand }: Question): number {
  return demand.kind === 'meter' ? chargeOf(demand) : costOf(demand)
}

function usedWithout(
  cost: number,
  { granted }: Answer,
  count: { readonly used?: number | undefined } | undefined,
): number | undefined {
  const used = count?.used
  return used === undefined ? undefined : granted ? Math.max(0, used - cost) : used
}
