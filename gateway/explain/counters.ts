/** What a project has used of its limits, by a look at the counters that requests meet. */
import { type Counters, lookingDecider } from '../decide/dry-run.js'
import type { Loaded } from '../run/load.js'
import type { Facts, Outcome, Project, Rule } from '../types.js'
import { explainedCounter } from './explained.js'
import { factsOf } from './facts.js'
import { endpointRules, projectOf, tableOf } from './policy.js'

/** Kinds whose rules count one for a request, so that what was counted before it is known. */
const COUNTS_ONE = ['project-limits', 'in-flight', 'volumetric']

/** What `GET /projects/{id}/counters` says; nothing is charged. @throws {NotFound} */
export async function countersOf(loaded: Loaded, counters: Counters, id: string): Promise<object> {
  const project = projectOf(loaded, id)
  const buckets = [...(tableOf(loaded, project)?.rules.values() ?? [])]
  const others = endpointRules(loaded).map(({ rule }) => rule)
  const ownKey = (rule: Rule) => rule.key.every(part => part === 'project') && COUNTS_ONE.includes(rule.kind)
  const shown = [...buckets, ...others.filter(ownKey)]
  const facts = factsOf(loaded, {})
  const told = await Promise.all(shown.map(rule => countersOfRule(rule, { counters, project, facts })))
  return {
    project: id,
    plan: project.plan,
    environment: project.environment,
    counters: told,
    // Their counters are as many as the requests' keys.
    not_shown: others.filter(rule => !ownKey(rule)).map(rule => rule.id),
  }
}

async function countersOfRule(
  rule: Rule,
  { counters, project, facts }: { counters: Counters; project: Project; facts: Facts },
): Promise<object> {
  const verdict = await lookingDecider(counters).decide({ facts, project, matched: [{ rule, route: '/' }] })
  await verdict.settled
  const [outcome] = [...verdict.outcomes, ...verdict.reportOnly]
  return {
    rule: rule.id,
    kind: rule.kind,
    mode: rule.mode,
    src: `${rule.source.file}:${rule.source.line}`,
    store: outcome?.store ?? null,
    counters: (outcome?.readings ?? []).map(reading => {
      const counter = explainedCounter(reading)
      // A look tells what one more request would find.
      const used = counter.used === null ? null : counter.used - (isIncluded(rule, outcome) ? 1 : 0)
      return { ...counter, used, left: used === null ? null : Math.max(0, counter.q - used) }
    }),
  }
}

/** A window that counts refused requests, too, has the one that only looked in it. */
function isIncluded({ kind }: Rule, outcome: Outcome | undefined): boolean {
  return kind === 'volumetric' || outcome?.result === 'allowed'
}
