/** A slot held by one request. The hold ends once, by whatever comes first. */

import type { Demand } from '../demand.js'
import type { Log, Rule } from '../types.js'

/** Why a hold ended: its request was done with it, `maxHold` passed, or the slot expired unrenewed. */
export type SlotEnding = 'given-back' | 'held-too-long' | 'lost'

/** Called for every slot taken (+1) and ended (-1), with the rule's id; `hold` is the slot itself. */
export type OnSlots = (rule: string, change: 1 | -1, ending?: SlotEnding, hold?: Hold) => void

/** What is known of a slot when it is taken. */
export interface SlotTerms {
  /** The counter key, and the pattern that matched. */
  readonly key?: string
  readonly route?: string
  readonly demand?: Demand
  readonly onLost?: ((listener: () => void) => void) | undefined
}

export class Hold {
  readonly rule: Rule
  readonly key: string | undefined
  readonly route: string | undefined
  /** When it was taken, by `performance.now()`. */
  readonly since = performance.now()
  /** True when an upgrade holds it until its tunnel closes. */
  readonly lifetime: boolean
  readonly #release: () => void
  readonly #onEnd: (ending: SlotEnding) => void
  readonly #limit: NodeJS.Timeout | undefined
  #ended = false

  /** Calls `release` and `onEnd` once. */
  constructor(
    rule: Rule,
    release: () => void,
    { demand, onLost, key, route }: SlotTerms,
    onEnd: (ending: SlotEnding) => void,
  ) {
    this.rule = rule
    this.key = key
    this.route = route
    this.#release = release
    this.#onEnd = onEnd
    const terms = demand?.kind === 'slots' ? demand : undefined
    this.lifetime = terms?.count === 'lifetime'
    if (terms?.maxHoldMs !== undefined) {
      this.#limit = setTimeout(() => this.end('held-too-long'), terms.maxHoldMs).unref()
    }
    onLost?.(() => this.end('lost'))
  }

  end(ending: SlotEnding): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#limit)
    this.#release()
    this.#onEnd(ending)
  }
}

/** Time between two warnings of one kind about one rule. */
const QUIET_MS = 60_000
const WARNINGS = {
  'held-too-long': 'slots were given back after maxHold while their requests were still in flight',
  lost: 'slots expired before they could be renewed: more requests than allowed may have been in flight',
} as const

/**
 * Reports changes in the number of held slots, and warns of slots that ended before their requests did: at most one
 * line a minute for each rule and cause, without keys.
 */
export function slotReports(
  onChange: (rule: string, change: number) => void,
  log: Log,
  now = () => performance.now(),
): OnSlots {
  const quietUntil = new Map<string, number>()
  return (rule, change, ending = 'given-back') => {
    onChange(rule, change)
    if (ending === 'given-back') return
    const warning = WARNINGS[ending]
    const what = `${rule} ${warning}`
    if ((quietUntil.get(what) ?? Number.NEGATIVE_INFINITY) > now()) return
    quietUntil.set(what, now() + QUIET_MS)
    log.warn({ rule }, warning)
  }
}
