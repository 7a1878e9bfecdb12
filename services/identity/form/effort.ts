/** A limit on the work that a schema's patterns may cause for one document. */

/** In steps; a few hundred milliseconds. An ordinary pattern takes few steps for a megabyte. */
const MOST_STEPS = 3_000_000

/** Thrown when a document would keep the patterns busy for too long. */
export class TooMuchEffort extends Error {}

/** The remaining work for one document. */
export class Effort {
  #left = MOST_STEPS

  /** Starts a new document. */
  renew(): void {
    this.#left = MOST_STEPS
  }

  /** Throws TooMuchEffort. */
  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw new TooMuchEffort()
  }
}
