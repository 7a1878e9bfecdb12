/** Forgets what one counter has counted, and says so in the log. */
import { listed } from '../../config/problem.js'
import { type CounterName, NotFound, Unnamed, Unreachable } from '../admin/inspect.js'
import { counterKey } from '../decide/key.js'
import type { Loaded } from '../run/load.js'
import type { Log, Project, Rule } from '../types.js'
import { factsOf } from './facts.js'
import { endpointRules, projectOf, tableOf } from './policy.js'

/** A counter that was reset: its rule, and what it counts by. */
export interface Reset {
  readonly reset: string
  readonly key: string
}

export interface ResetOptions {
  /** What is in force. */
  loaded(): Loaded
  /** Forgets what was counted by a key; rejects when the store cannot be told. */
  forget(key: string): Promise<void>
  readonly log: Log
}

/** What `DELETE /counters/{rule}` does, at the wish of the address `by`. @throws {NotFound} {Unnamed} {Unreachable} */
export async function reset(
  name: CounterName,
  by: string,
  { loaded, forget, log }: ResetOptions,
): Promise<Reset> {
  const { rule, key } = counterOf(name, loaded())
  await forget(key).catch(error => {
    throw new Unreachable('Redis cannot be told: the counter is as it was.', { cause: error })
  })
  // A warning, so that it is written whatever is left out.
  log.warn(
    { audit: 'counter-reset', rule: rule.id, project: name.project ?? null, by },
    'A counter was reset by the admin API',
  )
  return { reset: rule.id, key }
}

/** The parts of a key that a question can name, and how. */
const NAMEABLE: Readonly<Record<string, readonly (keyof CounterName)[]>> = {
  project: ['project'],
  path: ['method', 'path'],
  'full-path': ['path'],
  'client-ip': ['ip'],
  method: ['method'],
}

function counterOf(name: CounterName, loaded: Loaded): { rule: Rule; key: string } {
  const project = name.project === undefined ? undefined : projectOf(loaded, name.project)
  const bucket = project && tableOf(loaded, project)?.rules.get(name.rule)
  const rule = bucket ?? endpointRules(loaded).find(one => one.rule.id === name.rule)?.rule
  if (rule === undefined) {
    const help = project === undefined ? ' Name the project of a bucket.' : ''
    throw new NotFound(`There is no bucket or rule "${name.rule}" here.${help}`)
  }
  const unnameable = rule.key.find(part => NAMEABLE[part] === undefined)
  if (unnameable !== undefined) {
    throw new Unnamed(`The key of "${rule.id}" has the part "${unnameable}", which nobody can name.`)
  }
  const wanted = new Set(rule.key.flatMap(part => NAMEABLE[part] ?? []))
  const missing = [...wanted].filter(part => name[part] === undefined)
  if (missing.length > 0)
    throw new Unnamed(`Give ${listed(missing, 'and')}: "${rule.id}" counts by ${listed(rule.key, 'and')}.`)
  const facts = factsOf(loaded, name)
  const caller = project ?? NOBODY
  const matched = loaded.compiled.snapshot(new Map()).match(facts, caller)
  const route = matched.find(one => one.rule.id === rule.id)?.route
  if (route === undefined && rule.key.includes('path')) {
    throw new Unnamed(`"${rule.id}" does not look at ${name.method} ${name.path}.`)
  }
  const key = counterKey(rule, {
    facts,
    project: caller,
    route: route ?? '/',
    emailOrFlow: undefined,
  })
  if (key === undefined) throw new Unnamed(`Such a request has no counter of "${rule.id}".`)
  return { rule, key }
}

const NOBODY: Project = { id: 'nobody', plan: 'developer', environment: 'production' }
