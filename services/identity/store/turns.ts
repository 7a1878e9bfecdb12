/**
 * Lets work on one key wait for the work before it, within this process. MongoDB compares and writes a document in one
 * step; some servers of its protocol (FerretDB 1) do it in two, and there this keeps two writers apart.
 */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Runs `work` when all earlier work on `key` has ended, however it ended. */
  take<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(work, work)
    this.#last.set(key, turn)
    const leave = () => {
      if (this.#last.get(key) === turn) this.#last.delete(key)
    }
    turn.then(leave, leave)
    return turn
  }
}
