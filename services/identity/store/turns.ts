/**
 * Runs work on one key one after the other, within this process. MongoDB compares and writes a document in one step;
 * some compatible servers (FerretDB 1) use two, and this keeps two writers apart there.
 */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Runs `work` when all earlier work on `key` has ended, even with an error. */
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
