/**
 * Limiters that count by themselves, contained: one that throws, lies or outlives the deadline is handled like a counter
 * store that is away, and named in the log.
 */
import type { Check, Ruling, SelfCountingLimiter } from '../plugin.js'
import type { Log, Rule } from '../types.js'

/** A ruling, or the news that there is none and the request may not pass without. */
export type Contained = Ruling | 'unavailable'

const PASSED: Ruling = { granted: true, store: 'none', readings: [] }

/** A limiter that hears at the deadline that Redis is late still needs a moment to say what it does without. */
const GRACE_MS = 10

export class SelfCounting {
  readonly #deadlineMs: number
  readonly #log: Log

  /**
   * @param deadlineMs how long a ruling is waited for
   * @param log hears of limiters that fail
   */
  constructor(deadlineMs: number, log: Log) {
    this.#deadlineMs = deadlineMs
    this.#log = log
  }

  /** Never throws and never rejects. */
  spend(limiter: SelfCountingLimiter<unknown>, check: Check): Contained | Promise<Contained> {
    return this.#contained(check.rule, () => limiter.spend(check))
  }

  /** What `spend` would say, without counting; of a limiter that cannot tell, that the request passes uncounted. */
  peek(limiter: SelfCountingLimiter<unknown>, check: Check): Contained | Promise<Contained> {
    return this.#contained(check.rule, () => limiter.peek?.(check) ?? PASSED)
  }

  /** The refusal that the limiter knows to stand, if so. Never throws. */
  recall(limiter: SelfCountingLimiter<unknown>, check: Check): Ruling | undefined {
    try {
      return limiter.recall?.(check)
    } catch (error) {
      this.#failed(check.rule, error)
      return undefined
    }
  }

  #contained(rule: Rule, ask: () => Contained | Promise<Contained>): Contained | Promise<Contained> {
    try {
      const ruling = ask()
      return ruling instanceof Promise ? this.#withinDeadline(ruling, rule) : ruling
    } catch (error) {
      return this.#failed(rule, error)
    }
  }

  #withinDeadline(ruling: Promise<Contained>, rule: Rule): Promise<Contained> {
    return new Promise(resolve => {
      let waiting = true
      const settle = (contained: Contained) => {
        waiting = false
        clearTimeout(timer)
        resolve(contained)
      }
      // As with the store, the deadline measures the limiter and not our own event loop.
      const timer = setTimeout(() => {
        setImmediate(() => {
          if (waiting) settle(this.#failed(rule, new Error('no answer within the deadline')))
        })
      }, this.#deadlineMs + GRACE_MS)
      ruling.then(
        value => {
          if (waiting) settle(value)
          else undo(value)
        },
        error => {
          if (waiting) settle(this.#failed(rule, error))
        },
      )
    })
  }

  #failed(rule: Rule, error: unknown): Contained {
    this.#log.warn({ err: error, plugin: rule.kind, rule: rule.id }, 'a limiter did not answer')
    return rule.onStoreError === 'closed' ? 'unavailable' : PASSED
  }
}

/** Nobody waits for this ruling any more. */
function undo(ruling: Contained): void {
  if (ruling === 'unavailable') return
  ruling.giveBack?.()
  ruling.release?.()
}
