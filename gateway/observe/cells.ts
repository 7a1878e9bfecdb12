/** A counter by label values whose increment costs one map look-up, for the path of every request. */

interface Cell {
  readonly values: readonly string[]
  count: number
}

export class CellCounter {
  readonly #labels: readonly string[]
  readonly #cells = new Map<string, Cell>()

  constructor(labels: readonly string[]) {
    this.#labels = labels
  }

  /** Adds one; `values` stand in the order of the labels and hold no line breaks. */
  inc(...values: readonly string[]): void {
    const key = values.join('\n')
    const cell = this.#cells.get(key)
    if (cell === undefined) this.#cells.set(key, { values, count: 1 })
    else cell.count += 1
  }

  /** Every combination seen, as an object of labels, with its count. */
  *[Symbol.iterator](): Generator<[Record<string, string>, number]> {
    for (const { values, count } of this.#cells.values()) {
      yield [Object.fromEntries(this.#labels.map((label, i) => [label, values[i] ?? ''])), count]
    }
  }
}
