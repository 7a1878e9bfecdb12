/** Counts how often the candidate decides as the log says, which shows how reliable a replay is. */
import type { Judged } from './simulation.js'
import type { Traffic } from './traffic.js'

export type RecordedDocument = NonNullable<ReturnType<Recorded['describe']>>

export class Recorded {
  /** `requests`: those for which the log says whether they were refused. */
  readonly #counts = { requests: 0, bothAdmit: 0, bothRefuse: 0, onlyThen: 0, onlyNow: 0 }

  add({ wasRefused }: Traffic, { result }: Judged): void {
    if (wasRefused === undefined) return
    const now = result === 'refused'
    this.#counts.requests += 1
    this.#counts[wasRefused ? (now ? 'bothRefuse' : 'onlyThen') : now ? 'onlyNow' : 'bothAdmit'] += 1
  }

  /** Null when the log does not say of any request whether it was refused. */
  describe() {
    return this.#counts.requests === 0 ? null : { ...this.#counts }
  }
}
