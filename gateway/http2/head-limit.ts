const NEVER = Number.POSITIVE_INFINITY

/** The time for a head, or another frame, that has arrived in part to be whole. */
export class HeadLimit {
  /** In ms of `performance.now()`; Infinity while nothing has arrived in part. */
  ends = NEVER
  readonly #ms: number

  constructor(ms: number) {
    this.#ms = ms
  }

  /** Called after each read. */
  onReadEnd(isWithinHead: boolean, now: number): void {
    if (!isWithinHead) this.ends = NEVER
    else if (this.ends === NEVER) this.ends = now + this.#ms
  }
}
