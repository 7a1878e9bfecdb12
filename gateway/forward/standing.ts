/** What is known of one address: whether it answers requests, can be connected to and passes its checks. */
import { Ejection } from './ejection.js'
import { causeOf } from './failure.js'

/** Why an address does not answer, and since when. */
export interface Fault {
  /** In words, for operators; it may name the address. */
  readonly cause: string
  /** Milliseconds since the epoch. */
  readonly since: number
}

/** How many checks in a row change what is known. */
export interface CheckCounts {
  readonly healthy: number
  readonly unhealthy: number
}

export class Standing {
  readonly ejection: Ejection
  /** Set while no connection can be opened, and after several failures in a row. */
  fault: Fault | undefined
  /** The latest failure was that no connection could be opened. */
  isCutOff = false
  /** Set while it fails its checks. */
  unhealthy: Fault | undefined
  /** When it has come back, in ms of `performance.now()`; undefined where that does not matter. */
  backSince: number | undefined
  /** Checks in a row that speak against what is known. */
  #contrary = 0

  constructor(known?: Standing) {
    this.ejection = new Ejection(known?.ejection)
    this.fault = known?.fault
    this.isCutOff = known?.isCutOff ?? false
    this.unhealthy = known?.unhealthy
    this.backSince = known?.backSince
  }

  /** It has failed. The cause is the latest, since it may change while the address is away. */
  noteFault(error: Error, isCutOff: boolean): void {
    this.fault = { cause: causeOf(error), since: this.fault?.since ?? Date.now() }
    this.isCutOff = isCutOff
  }

  /** A check has passed, or failed with `error`; the new state if that changes it. */
  checked(error: Error | undefined, counts: CheckCounts): 'healthy' | 'unhealthy' | undefined {
    const isContrary = (error === undefined) === (this.unhealthy !== undefined)
    this.#contrary = isContrary ? this.#contrary + 1 : 0
    if (error !== undefined && this.unhealthy !== undefined)
      this.unhealthy = { cause: causeOf(error), since: this.unhealthy.since }
    if (!isContrary || this.#contrary < (error === undefined ? counts.healthy : counts.unhealthy))
      return undefined
    this.#contrary = 0
    this.unhealthy = error && { cause: causeOf(error), since: Date.now() }
    return error === undefined ? 'healthy' : 'unhealthy'
  }
}
