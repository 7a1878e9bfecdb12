/** A counter by label values, cheap enough for the path of every request: no text is joined, nothing is hashed twice. */

interface Cell {
  readonly labels: Record<string, string>
  count: number
}
/** One level for each label; the cells stand below the last. */
type Level = Map<string, Level | Cell>

export class CellCounter {
  readonly #names: readonly string[]
  readonly #root: Level = new Map()
  readonly #cells: Cell[] = []

  constructor(names: readonly string[]) {
    this.#names = names
  }

  /** Adds one; `values` stand in the order of the label names. */
  inc(...values: readonly string[]): void {
    let at: Level | Cell | undefined = this.#root
    for (const value of values) at = (at as Level | undefined)?.get(value)
    if (at === undefined) at = this.#add(values)
    ;(at as Cell).count += 1
  }

  /** Every combination seen, as an object of labels, with its count. */
  *[Symbol.iterator](): Generator<[Record<string, string>, number]> {
    for (const { labels, count } of this.#cells) yield [labels, count]
  }

  #add(values: readonly string[]): Cell {
    const labels = Object.fromEntries(this.#names.map((name, i) => [name, values[i] ?? '']))
    const cell = { labels, count: 0 }
    let level = this.#root
    for (const value of values.slice(0, -1)) {
      const next = (level.get(value) as Level | undefined) ?? new Map()
      level.set(value, next)
      level = next
    }
    level.set(values.at(-1) ?? '', cell)
    this.#cells.push(cell)
    return cell
  }
}
