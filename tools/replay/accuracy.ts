/** What a replay cannot know because the log does not contain it: reported with every result. */
import { countsUnknownBy } from '../../config/words/words.js'
import type { Configuration } from '../../gateway/configured/load.js'
import type { KeyPart } from '../../gateway/types.js'
import type { LogIntake } from '../log/intake.js'
import { count, grouped, percent } from '../text.js'
import { names } from './policies.js'
import type { Sampling } from './records.js'
import type { Format, LoggedFacts, Traffic } from './traffic.js'
import {
  hashedShares,
  type Judging,
  judgingBy,
  leftOutLeases,
  leftOutLifetimes,
  shortenedConditions,
  shortenedNetworks,
} from './unknown-to-log.js'

const HASHED = /^~[\w-]{16}$/
const MOST_WORDS = 10_000
const SHOWN_WORDS = 5

/** Collects what the log's requests contain. */
export class Seen {
  #requests = 0
  #timed = 0
  #refusedThen = 0
  #answered = 0
  #away = 0
  #ruledAtRunTime = 0
  #wholeSeconds = 0
  readonly #headers = new Set<string>()
  readonly #words = new Set<string>()
  #hashedPaths = 0
  #emailOrFlow = 0
  #calls = 0

  add(traffic: Traffic, parts: readonly KeyPart[]): void {
    const { at, facts, durationMs, status, wasRefused, wasAway, wasRuledAtRunTime } = traffic
    this.#requests += 1
    if (status !== undefined) this.#answered += 1
    if (durationMs !== undefined) this.#timed += 1
    if (wasRefused) this.#refusedThen += 1
    if (wasAway) this.#away += 1
    if (wasRuledAtRunTime) this.#ruledAtRunTime += 1
    if (at % 1000 === 0) this.#wholeSeconds += 1
    if (facts === undefined) return
    if (traffic.calls !== undefined) this.#calls += 1
    if (facts.query.includes('flow=')) this.#emailOrFlow += 1
    for (const part of parts) {
      const name = part.startsWith('header:') ? part.slice('header:'.length) : undefined
      if (name !== undefined && facts.header(name) !== undefined) this.#headers.add(part)
    }
    if (this.#words.size >= MOST_WORDS && this.#hashedPaths > 0) return
    for (const segment of facts.path.split('/')) {
      if (HASHED.test(segment)) this.#hashedPaths += 1
      else if (this.#words.size < MOST_WORDS) this.#words.add(segment)
    }
  }

  /** The sentences, the most serious first. */
  describe(
    policies: readonly Configuration[],
    formats: ReadonlySet<Format>,
    sampling: Sampling,
    intake: LogIntake,
  ): string[] {
    const judging = judgingBy(policies, formats)
    return [
      ...this.#completeness(judging, sampling, intake),
      ...this.#durations(judging),
      ...this.#answers(judging),
      ...uncountedMessages(judging),
      ...shortenedConditions(judging),
      ...this.#keys(judging),
      ...hashedShares(judging),
      ...shortenedNetworks(judging),
      ...this.#runTimeEntries(),
      ...this.#unseenWords(judging),
      ...this.#times(),
      ...leftOutLeases(judging),
      ...leftOutLifetimes(judging),
      ...this.#outages(),
    ]
  }

  #runTimeEntries(): string[] {
    if (this.#ruledAtRunTime === 0) return []
    const requests = count(this.#ruledAtRunTime, 'request')
    return [
      `Access entries, modes and negotiated limits set at run time decided about ${requests}; a replay knows those of files only.`,
    ]
  }

  #completeness(
    { isRecords }: Judging,
    { dropped, admitted, sample }: Sampling,
    intake: LogIntake,
  ): string[] {
    const sentences: string[] = []
    if (isRecords && admitted === 0) {
      sentences.push(
        'The log holds refusals only, so counters fill up slower than they did: a replay needs log.decisions: all.',
      )
    } else if (isRecords && sample < 1) {
      sentences.push(
        `The log holds ${percent(sample)} of the admitted requests, so counters fill up slower than they did: a replay needs log.decisions: all.`,
      )
    }
    const left = [...dropped.values()].reduce((sum, lines) => sum + lines, 0)
    if (left > 0) sentences.push(`The log left out ${count(left, 'record')} in floods.`)
    const { broken, version, clock } = intake.troubles
    const skipped = broken + version + clock
    if (skipped > 0) sentences.push(`Lines that could not be read are missing here: ${grouped(skipped)}.`)
    if (intake.late > 0) sentences.push(`${count(intake.late, 'request')} came too late to be put in order.`)
    return sentences
  }

  #durations({ rules }: Judging): string[] {
    const slots = rules.filter(({ kind }) => kind === 'in-flight')
    if (slots.length === 0) return []
    if (this.#timed === 0) {
      return [`The log has no durations, so these in-flight rules refuse nothing here: ${names(slots)}.`]
    }
    const sentences: string[] = []
    if (this.#timed < this.#requests) {
      const untimed = grouped(this.#requests - this.#timed)
      sentences.push(`Requests without a duration hold no slots of in-flight rules: ${untimed}.`)
    }
    if (this.#refusedThen > 0) {
      sentences.push(
        `It is unknown how long a slot would have been held by requests that were refused then: ${grouped(this.#refusedThen)}.`,
      )
    }
    return sentences
  }

  /** Rules that charge after the response. */
  #answers({ rules }: Judging): string[] {
    const counting = rules.filter(({ flood }) => flood?.countWhen !== undefined)
    const reported = rules.filter(({ flood }) => typeof flood?.cost === 'object')
    const late = [...new Set([...counting, ...reported])]
    const sentences: string[] = []
    if (late.length > 0 && this.#answered === 0) {
      return [
        `The log has no statuses, so these rules, which count by the answer, count nothing here: ${names(late)}.`,
      ]
    }
    if (late.length > 0 && this.#refusedThen > 0) {
      sentences.push(
        `It is unknown how requests would have been answered that were refused then, so ${names(late)} count nothing of them: ${grouped(this.#refusedThen)}.`,
      )
    }
    if (reported.length > 0) {
      sentences.push(
        `The log does not hold fields of answers, so each request costs 1 here by these rules: ${names(reported)}.`,
      )
    }
    return sentences
  }

  #keys({ policies, rules, knows }: Judging): string[] {
    const reported = (part: KeyPart): boolean => {
      if (part.startsWith('header:')) return this.#headers.has(part)
      if (part === 'email-or-flow') return this.#emailOrFlow > 0
      if (part === 'json-rpc') return this.#calls > 0
      const needed: LoggedFacts | undefined =
        part === 'client-ip'
          ? 'client'
          : part === 'ja3' || part === 'ja4' || part === 'auth' || part === 'host'
            ? part
            : undefined
      return needed === undefined || knows(needed)
    }
    const unlogged = new Map<KeyPart, { id: string }[]>()
    for (const rule of rules) {
      for (const part of rule.key)
        if (!reported(part)) unlogged.set(part, [...(unlogged.get(part) ?? []), rule])
    }
    const sentences = [...unlogged].map(
      ([part, some]) =>
        `No line of the log has ${part}, a part of the key of ${names(some)}: judged as if it were absent.`,
    )
    const byCall = rules.filter(({ key }) => key.includes('json-rpc'))
    if (this.#calls > 0 && byCall.length > 0) {
      sentences.push(
        `The log does not say how many calls a batch had, so each batch costs what one call does here by these rules: ${names(byCall)}.`,
      )
    }
    if (!knows('project', 'host')) {
      sentences.push(
        'The log does not record the host, so all requests may count as one unknown project: name it with --host.',
      )
    }
    const countsByClient = policies.some(
      ({ config }) => countsUnknownBy(config.gateway.unknownProject) === 'client',
    )
    if (countsByClient && !knows('client')) {
      sentences.push('The log has no addresses, so all callers without a project count as one client.')
    }
    return sentences
  }

  /** Words of a path that the recording policy did not contain are hashed, so no pattern can match them by name. */
  #unseenWords({ policies }: Judging): string[] {
    if (this.#hashedPaths === 0) return []
    const words = new Set(policies.flatMap(({ compiled }) => [...compiled.policy.words]))
    const unseen = [...words].filter(word => !this.#words.has(word)).sort()
    if (unseen.length === 0) return []
    const shown = unseen.slice(0, SHOWN_WORDS).join(', ')
    const more = unseen.length > SHOWN_WORDS ? ` and ${grouped(unseen.length - SHOWN_WORDS)} more` : ''
    return [
      `Paths in the log show only words of the policy that was then in force. These words of the patterns never occur, because nobody asked or because they are hashed: ${shown}${more}.`,
    ]
  }

  #outages(): string[] {
    if (this.#away === 0) return []
    return [
      `Redis was away, or a rule could not be counted, for ${count(this.#away, 'request')}: here everything is always counted.`,
    ]
  }

  #times(): string[] {
    if (this.#wholeSeconds < this.#requests) return []
    return ['Times in the log are whole seconds, so burst limits are judged by whole seconds.']
  }
}

/** Logs hold requests, and of the messages of WebSockets only how many there were. */
function uncountedMessages({ rules }: Judging): string[] {
  const counting = rules.filter(({ flood }) => flood?.count === 'message')
  if (counting.length === 0) return []
  return [`A replay has no messages of WebSockets, so these rules count nothing here: ${names(counting)}.`]
}
