const NEVER = Number.POSITIVE_INFINITY

/** The time for a head, or another frame, that has arrived in part to be whole. */
export class HeadLimit {
  /** In ms of `performance.now()`; Infinity while nothing has arrived in part. */
  ends = NEVER
  readonly #ms: number
  #part: number | undefined

  constructor(ms: number) {
    this.#ms = ms
  }

  /** Called after each read. `part` is undefined if nothing has arrived in part, else a number that no other part has. */
  onReadEnd(part: number | undefined, now: number): void {
    if (part === undefined) this.ends = NEVER
    else if (part !== this.#part) this.ends = now + this.#ms
    this.#part = part
  }
}
