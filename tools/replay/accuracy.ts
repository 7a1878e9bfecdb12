/** What a replay cannot know because the log does not contain it: reported with every result. */
import { isProjectLimits } from '../../config/load.js'
import { UNLIMITED } from '../../config/words.js'
import type { Flood } from '../../gateway/explain/settings.js'
import type { WrittenWhen } from '../../gateway/policy/when.js'
import type { Loaded } from '../../gateway/run/load.js'
import type { KeyPart } from '../../gateway/types.js'
import type { Intake } from '../log/intake.js'
import { count, grouped, percent } from '../text.js'
import type { Sampling } from './records.js'
import type { Format, LoggedFacts, Traffic } from './traffic.js'

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
    policies: readonly Loaded[],
    formats: ReadonlySet<Format>,
    sampling: Sampling,
    intake: Intake,
  ): string[] {
    return [
      ...this.#completeness(formats, sampling, intake),
      ...this.#durations(policies),
      ...this.#answers(policies),
      ...conditions(policies, formats),
      ...this.#keys(policies, formats),
      ...hashedShares(policies, formats),
      ...access(policies, formats),
      ...this.#runTimeEntries(),
      ...this.#unseenWords(policies),
      ...this.#times(),
      ...leases(policies),
      ...this.#outages(),
    ]
  }

  #runTimeEntries(): string[] {
    if (this.#ruledAtRunTime === 0) return []
    const requests = count(this.#ruledAtRunTime, 'request')
    return [
      `Access entries and modes set at run time decided about ${requests}; a replay knows those of files only.`,
    ]
  }

  #completeness(
    formats: ReadonlySet<Format>,
    { dropped, admitted, sample }: Sampling,
    intake: Intake,
  ): string[] {
    const sentences: string[] = []
    const isRecords = [...formats].some(({ name }) => name === 'records')
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

  #durations(policies: readonly Loaded[]): string[] {
    const slots = rulesOf(policies).filter(({ kind }) => kind === 'in-flight')
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
  #answers(policies: readonly Loaded[]): string[] {
    const counting = rulesOf(policies).filter(({ flood }) => flood?.countWhen !== undefined)
    const told = rulesOf(policies).filter(({ flood }) => typeof flood?.cost === 'object')
    const late = [...new Set([...counting, ...told])]
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
    if (told.length > 0) {
      sentences.push(
        `The log does not hold fields of answers, so each request costs 1 here by these rules: ${names(told)}.`,
      )
    }
    return sentences
  }

  #keys(policies: readonly Loaded[], formats: ReadonlySet<Format>): string[] {
    const told = (part: KeyPart): boolean => {
      if (part.startsWith('header:')) return this.#headers.has(part)
      if (part === 'email-or-flow') return this.#emailOrFlow > 0
      const needed: LoggedFacts | undefined =
        part === 'client-ip'
          ? 'client'
          : part === 'ja3' || part === 'ja4' || part === 'auth'
            ? part
            : undefined
      return needed === undefined || [...formats].every(({ tells }) => tells.has(needed))
    }
    const untold = new Map<KeyPart, { id: string }[]>()
    for (const rule of rulesOf(policies)) {
      for (const part of rule.key) if (!told(part)) untold.set(part, [...(untold.get(part) ?? []), rule])
    }
    const sentences = [...untold].map(
      ([part, rules]) =>
        `No line of the log has ${part}, a part of the key of ${names(rules)}: judged as if it were absent.`,
    )
    const knowsCallers = [...formats].every(({ tells }) => tells.has('project') || tells.has('host'))
    if (!knowsCallers) {
      sentences.push(
        'The log does not record the host, so all requests may count as one unknown project: name it with --host.',
      )
    }
    return sentences
  }

  /** Words of a path that the recording policy did not contain are hashed, so no pattern can match them by name. */
  #unseenWords(policies: readonly Loaded[]): string[] {
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

interface NamedRule {
  readonly id: string
  readonly kind: string
  readonly key: readonly KeyPart[]
  readonly enforceFor?: string | undefined
  readonly when: WrittenWhen | undefined
  /** The settings of a volumetric rule. */
  readonly flood: Flood | undefined
}

/** The rules of the policies outside project limits, which may count by more than the project. */
export function rulesOf(policies: readonly Loaded[]): NamedRule[] {
  const rules = new Map<string, NamedRule>()
  for (const { config } of policies) {
    for (const policy of config.policies) {
      if (isProjectLimits(policy)) continue
      for (const rule of policy.document.rules) {
        const { id, key, when, enforceFor } = rule
        const flood = policy.kind === 'volumetric' ? (rule as unknown as Flood) : undefined
        rules.set(`${id} ${key}`, { id, kind: policy.kind, key, when, enforceFor, flood })
      }
    }
  }
  return [...rules.values()]
}

/** Parts of keys that decision records contain as hashes. */
const HASHED_PART = /^(client-ip|full-path|email-or-flow|header:.*)$/

/** A hash of the key decides whether it is inside a share, so hashed parts change the selection. */
function hashedShares(policies: readonly Loaded[], formats: ReadonlySet<Format>): string[] {
  if (![...formats].some(({ name }) => name === 'records')) return []
  const shared = rulesOf(policies).filter(
    ({ enforceFor, key }) => enforceFor !== undefined && key.some(part => HASHED_PART.test(part)),
  )
  if (shared.length === 0) return []
  return [
    `The log holds hashes of what these rules count by, so as many keys are inside their shares here as at the gateway, but not the same ones: ${names(shared)}.`,
  ]
}

/** What the conditions of rules need but the log records only in part. */
function conditions(policies: readonly Loaded[], formats: ReadonlySet<Format>): string[] {
  const conditional = rulesOf(policies)
  const isRecords = [...formats].some(({ name }) => name === 'records')
  const byNetwork = conditional.filter(({ when }) => when?.networks !== undefined)
  const verified = conditional.filter(({ when }) => when?.authenticated === 'verified')
  const sentences: string[] = []
  if (isRecords && byNetwork.length > 0) {
    sentences.push(
      `The log has only the network of an address, /24 of IPv4 and /64 of IPv6, so smaller networks in the "when" of ${names(byNetwork)} are judged by its first address.`,
    )
  }
  if (!isRecords && verified.length > 0) {
    sentences.push(
      `The log does not say whose credentials were verified, so these rules count nothing here: ${names(verified)}.`,
    )
  }
  return sentences
}

/** The prefix lengths to which decision records shorten addresses. */
const TOLD_BITS = { v4: 24, v6: 64 }

/** Access entries whose networks the log cannot distinguish. */
function access(policies: readonly Loaded[], formats: ReadonlySet<Format>): string[] {
  const isRecords = [...formats].some(({ name }) => name === 'records')
  const isTold = [...formats].every(({ tells }) => tells.has('client'))
  const untold = policies.flatMap(({ compiled }) =>
    compiled.access.entries.filter(({ networks }) =>
      networks.some(
        ({ words, bits }) =>
          !isTold || (isRecords && bits > (words.length === 1 ? TOLD_BITS.v4 : TOLD_BITS.v6)),
      ),
    ),
  )
  if (untold.length === 0) return []
  const entries = names(untold.map(({ rule }) => rule))
  if (!isTold)
    return [`The log has no addresses, so networks of these access entries are not seen: ${entries}.`]
  return [
    `The log has only the network of an address, /24 of IPv4 and /64 of IPv6, so smaller networks of these access entries are not seen: ${entries}.`,
  ]
}

function leases(policies: readonly Loaded[]): string[] {
  const leased = policies.some(({ config }) =>
    config.policies.some(
      policy =>
        isProjectLimits(policy) &&
        policy.document.limits.some(({ quotas }) =>
          Object.values(quotas).some(quota => quota !== UNLIMITED && quota.lease),
        ),
    ),
  )
  return leased ? ['Leases are left out: several gateways that lease may refuse up to 10 % earlier.'] : []
}

function names(rules: readonly { readonly id: string }[]): string {
  return [...new Set(rules.map(({ id }) => id))].join(', ')
}
