/** Credit for the lifetime windows of projects, as the admin port adds and lists it. */
import { listed } from '../../config/problem.js'
import { isLifetime, windowsOf } from '../../config/words/quota.js'
import type { CreditBody, CreditSender, Credits } from '../admin/credit.js'
import type { Configuration } from '../configured/load.js'
import { projectsNamed } from '../configured/projects.js'
import type { AddedCredit, CreditAnswer, CreditEntry, CreditStore } from '../decide/credit/credit.js'
import type { Counters } from '../decide/dry-run.js'
import type { Question } from '../decide/question.js'
import { NotFound, Unnamed, Unreachable } from '../errors.js'
import { nameFault } from '../overrides/quota-fault.js'
import type { BucketRule } from '../policy/policy.js'
import type { Log, Project } from '../types.js'
import { lookAt } from './counters.js'
import { questionOf } from './named-counter.js'

/** The most that a window may admit in all: numbers in response fields have 15 digits (RFC 9651 section 3.3.1). */
const MOST = 999_999_999_999_999

export interface CreditOptions {
  /** The configuration in force. */
  loaded(): Configuration
  readonly counters: Counters
  readonly store: CreditStore
  /** Forgets that the key was refused, in this process. */
  forgetRefusals(key: string): void
  readonly log: Log
}

/** Credit that was added, as it is reported, and the key of the counter that it was added to. */
export interface Added {
  readonly entry: AddedCredit & { readonly project: string; readonly repeated: boolean }
  readonly key: string
}

/** What one process does. */
export interface ProcessCredits extends Pick<Credits, 'list'> {
  add(project: string, body: CreditBody, sender: CreditSender): Promise<Added>
}

/** Each call is about the configuration in force at the time. */
export function creditsIn(options: CreditOptions): ProcessCredits {
  return {
    add: (project, body, sender) => add(project, body, sender, options),
    list: project => list(project, options),
  }
}

/** @throws {Unnamed} {Unreachable} */
async function add(
  project: string,
  { bucket, window, amount, why, by }: CreditBody,
  { from, id }: CreditSender,
  { loaded, counters, store, forgetRefusals, log }: CreditOptions,
): Promise<Added> {
  if (amount === 0)
    throw new Unnamed('The amount is 0: give what to add, or a negative number to take it back.')
  const found = windowNamed(project, bucket, window, loaded())
  const { key } = counterOf(found, loaded(), counters)
  const entry = { bucket, window, amount, why, by: by ?? from, at: new Date().toISOString() }
  const most = MOST - found.requests
  const answer = await store.add({ key, entry, most, id }).catch(error => {
    const help =
      id === undefined
        ? 'Look at the list before you send it again'
        : 'Send it again with the same Idempotency-Key'
    const message = `Redis does not answer: the credit may or may not have been added. ${help}.`
    throw new Unreachable(message, { cause: error })
  })
  const added = entryOf(answer, entry, most)
  // Credit that was added just before, by a call whose answer was lost, counts here from now on, too.
  forgetRefusals(key)
  const repeated = answer.result === 'repeated'
  if (!repeated) {
    const said = { audit: 'credit-added', project, ...added, from }
    log.warn(said, 'Credit was added by the admin API')
  }
  return { entry: { project, ...added, repeated }, key }
}

/** @throws {Unnamed} if nothing was added */
function entryOf(answer: CreditAnswer, asked: CreditEntry, most: number): AddedCredit {
  if (answer.result === 'beyond') {
    const { credit } = answer
    if (asked.amount < 0)
      throw new Unnamed(
        `${-asked.amount} cannot be taken back: "${nameOf(asked)}" has a credit of ${credit}.`,
      )
    throw new Unnamed(
      `The credit of "${nameOf(asked)}" would be too large: it is ${credit}, and can be ${most} at most.`,
    )
  }
  const { entry } = answer
  const isSame = nameOf(entry) === nameOf(asked) && entry.amount === asked.amount
  if (isSame) return entry
  throw new Unnamed(
    `This Idempotency-Key was used for another credit: ${entry.amount} for "${nameOf(entry)}" at ${entry.at}. Choose a new one for each credit.`,
  )
}

const nameOf = ({ bucket, window }: Pick<CreditEntry, 'bucket' | 'window'>): string => `${bucket}.${window}`

interface LifetimeWindow {
  readonly project: Project
  readonly rule: BucketRule
  readonly window: string
  readonly requests: number
}

/** @throws {Unnamed} if there is no such window, with those that there are */
function windowNamed(id: string, bucket: string, name: string, loaded: Configuration): LifetimeWindow {
  const unknown = nameFault({ project: id, bucket }, loaded)
  if (unknown !== undefined) throw new Unnamed(unknown)
  const all = lifetimeWindows(id, loaded)
  const found = all.find(one => one.rule.id === bucket && one.window === name)
  if (found !== undefined) return found
  const known = [...new Set(all.map(({ rule, window }) => `"${rule.id}.${window}"`))]
  const others =
    known.length === 0
      ? `no bucket of project "${id}" has one. Give its quota a window with "per: lifetime".`
      : `those of project "${id}" are ${listed(known, 'and')}.`
  throw new Unnamed(`"${bucket}.${name}" is no lifetime window: ${others}`)
}

/** A project that only credentials name may have any plan, and so the windows of several rows. */
function lifetimeWindows(id: string, loaded: Configuration): LifetimeWindow[] {
  return projectsNamed(loaded, id).flatMap(project =>
    [...(loaded.compiled.policy.tableOf(project)?.rules.values() ?? [])].flatMap(rule =>
      'unlimited' in rule.config
        ? []
        : windowsOf(rule.config)
            .filter(isLifetime)
            .map(({ name: window, requests }) => ({ project, rule, window, requests })),
    ),
  )
}

function counterOf(
  { project, rule }: LifetimeWindow,
  loaded: Configuration,
  { questions }: Pick<Counters, 'questions'>,
): Question {
  // Buckets with lifetime windows count by project alone, which is given.
  return questionOf(rule, { given: {}, project, loaded, questions }) as Question
}

/** @throws {NotFound} {Unreachable} */
async function list(id: string, { loaded, counters, store }: CreditOptions): Promise<object> {
  const current = loaded()
  const [project] = projectsNamed(current, id)
  if (project === undefined) throw new NotFound(`There is no project "${id}" in this configuration.`)
  const questions = new Map<string, Question>()
  for (const found of lifetimeWindows(id, current)) {
    if (!questions.has(found.rule.id)) questions.set(found.rule.id, counterOf(found, current, counters))
  }
  const [first] = questions.values()
  const credits = first === undefined ? [] : await listOf(store, first.key)
  const windows = await Promise.all([...questions.values()].map(question => windowsAt(question, counters)))
  return { project: id, windows: windows.flat(), credits }
}

async function listOf(store: CreditStore, key: string): Promise<readonly AddedCredit[]> {
  return store.list(key).catch(error => {
    throw new Unreachable('Redis does not answer: its list of credits is not known.', { cause: error })
  })
}

async function windowsAt(question: Question, counters: Counters): Promise<object[]> {
  const { id } = question.rule
  const { store, readings } = await lookAt(question, counters)
  return readings
    .filter(({ lifetime }) => lifetime)
    .map(({ policy, quota, credit, used, left }) => ({
      bucket: id,
      window: policy.slice(id.length + 1),
      /** Credit included. */
      quota,
      credit: credit ?? null,
      used: used ?? null,
      left: left ?? null,
      store,
    }))
}
