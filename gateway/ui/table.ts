/** A table that keeps its rows while their numbers change: only cells that differ are updated. */
import { button, make, setText } from './dom.js'
import { count } from './format.js'

export interface TableColumn<Row> {
  readonly title: string
  readonly number?: boolean
  /** Left out on narrow screens. */
  readonly wide?: boolean
  /** The value by which rows are sorted, numbers in descending order. Without it the column is not sortable. */
  value?(row: Row): number | string
  /** The cell's text. */
  text?(row: Row): string
  /** Draws the cell instead, whenever the result of `text` has changed. */
  paint?(cell: HTMLElement, row: Row): void
}

/** A column of numbers, sorted in descending order. */
export function numbers<Row>(
  title: string,
  value: (row: Row) => number,
  text: (value: number) => string = count,
  wide = false,
): TableColumn<Row> {
  return { title, number: true, wide, value, text: row => text(value(row)) }
}

/** A column of names, each a button that shows what it names. */
export function links<Row>(
  title: string,
  text: (row: Row) => string,
  show: (row: Row) => void,
): TableColumn<Row> {
  const link = (row: Row) => button(text(row), () => show(row), { class: 'link' })
  return { title, text, paint: (cell, row) => cell.replaceChildren(link(row)) }
}

export interface TableOptions<Row> {
  /** The caption for screen readers. */
  readonly caption: string
  readonly columns: readonly TableColumn<Row>[]
  id(row: Row): string
  /** Text shown instead of an empty table. */
  readonly empty: string
  /** Title of the column that the table is sorted by at first; without it rows keep their order. */
  readonly sortedBy?: string
}

/** Rows drawn at first, and added on demand: a thousand rows that change every second are too expensive to lay out. */
const FIRST_ROWS = 12
const MORE_ROWS = 100

interface Drawn {
  readonly element: HTMLTableRowElement
  readonly cells: readonly HTMLElement[]
  readonly texts: string[]
}

export class LiveTable<Row> {
  readonly element: HTMLElement
  readonly #options: TableOptions<Row>
  readonly #body = make('tbody')
  readonly #heads = new Map<TableColumn<Row>, HTMLElement>()
  readonly #more: HTMLButtonElement
  readonly #empty: HTMLElement
  readonly #drawn = new Map<string, Drawn>()
  #rows: readonly Row[] = []
  #order: readonly string[] = []
  #column: TableColumn<Row> | undefined
  #isReversed = false
  #most = FIRST_ROWS

  constructor(options: TableOptions<Row>) {
    this.#options = options
    this.#column = options.columns.find(({ title }) => title === options.sortedBy)
    const heads = options.columns.map(column => this.#head(column))
    const table = make(
      'table',
      {},
      make('caption', { class: 'unseen' }, options.caption),
      make('thead', {}, make('tr', {}, ...heads)),
      this.#body,
    )
    this.#empty = make('p', { class: 'empty' }, options.empty)
    this.#more = button('', () => {
      this.#most += MORE_ROWS
      this.#draw()
    })
    // A separate focusable region, so that the keyboard can scroll a table that is too wide.
    const scrolled = make('div', {
      class: 'scroll',
      role: 'group',
      'aria-label': options.caption,
      tabindex: '0',
    })
    scrolled.append(table)
    this.element = make('div', {}, scrolled, this.#empty, this.#more)
    this.#more.hidden = true
    this.#showOrder()
  }

  update(rows: readonly Row[]): void {
    this.#rows = rows
    this.#draw()
  }

  #head(column: TableColumn<Row>): HTMLElement {
    const head = make('th', { scope: 'col', class: classOf(column) })
    if (column.value === undefined) head.append(column.title)
    else head.append(button(column.title, () => this.#sortBy(column), { class: 'sort' }))
    this.#heads.set(column, head)
    return head
  }

  #sortBy(column: TableColumn<Row>): void {
    this.#isReversed = this.#column === column && !this.#isReversed
    this.#column = column
    this.#order = []
    this.#showOrder()
    this.#draw()
  }

  #showOrder(): void {
    for (const [column, head] of this.#heads) {
      if (column !== this.#column) head.removeAttribute('aria-sort')
      else head.setAttribute('aria-sort', isDescending(column, this.#isReversed) ? 'descending' : 'ascending')
    }
  }

  #draw(): void {
    const rows = this.#sorted()
    const shown = rows.slice(0, this.#most)
    const ids = new Set(shown.map(row => this.#options.id(row)))
    for (const [id, { element }] of this.#drawn) {
      if (ids.has(id)) continue
      element.remove()
      this.#drawn.delete(id)
    }
    let before: Element | null = this.#body.firstElementChild
    for (const row of shown) {
      const { element } = this.#drawnRow(row)
      if (element === before) before = before.nextElementSibling
      else this.#body.insertBefore(element, before)
    }
    this.#empty.hidden = rows.length > 0
    this.#more.hidden = shown.length === rows.length
    setText(this.#more, `Show more (${count(shown.length)} of ${count(rows.length)})`)
  }

  #drawnRow(row: Row): Drawn {
    const { columns, id } = this.#options
    let drawn = this.#drawn.get(id(row))
    if (drawn === undefined) {
      const cells = columns.map((column, i) =>
        make(i === 0 ? 'th' : 'td', { class: classOf(column), ...(i === 0 && { scope: 'row' }) }),
      )
      drawn = { element: make('tr', {}, ...cells), cells, texts: columns.map(() => '') }
      this.#drawn.set(id(row), drawn)
    }
    const { cells, texts } = drawn
    for (const [i, column] of columns.entries()) {
      const text = column.text?.(row) ?? ''
      if (texts[i] === text) continue
      texts[i] = text
      const cell = cells[i] as HTMLElement
      if (column.paint === undefined) cell.textContent = text
      else column.paint(cell, row)
    }
    return drawn
  }

  /** Rows keep their places while the pointer or the focus is on one of them. */
  #sorted(): readonly Row[] {
    const { id } = this.#options
    const column = this.#column
    if (column?.value === undefined) return this.#rows
    if (this.#order.length > 0 && this.#body.matches(':hover, :focus-within')) {
      const places = new Map(this.#order.map((name, place) => [name, place]))
      const placeOf = (row: Row) => places.get(id(row)) ?? places.size
      return this.#rows.toSorted((a, b) => placeOf(a) - placeOf(b))
    }
    const sign = isDescending(column, this.#isReversed) ? -1 : 1
    const value = column.value
    const sorted = this.#rows.toSorted((a, b) => sign * compared(value(a), value(b)))
    this.#order = sorted.map(id)
    return sorted
  }
}

const classOf = ({ number, wide }: TableColumn<never>) =>
  [number && 'number', wide && 'wide'].filter(Boolean).join(' ')

const isDescending = (column: TableColumn<never>, isReversed: boolean) =>
  (column.number === true) !== isReversed

function compared(a: number | string, b: number | string): number {
  return typeof a === 'number' ? a - (b as number) : a.localeCompare(b as string)
}
