/** The table of all rules: what each allows and refuses, now and in the last hour. */
import type { LiveHistory, LiveRule } from '../admin/live-snapshot.js'
import { askJson, query } from './api.js'
import { draw, make, state } from './dom.js'
import { count, rate } from './format.js'
import { modeWords } from './history.js'
import { LiveTable, links, numbers, type TableColumn } from './table.js'

export class RulesTable {
  readonly element: HTMLElement
  readonly #table: LiveTable<LiveRule>
  readonly #filter: HTMLInputElement
  #rules: readonly LiveRule[] = []

  /** @param show shows the last hour of a rule */
  constructor(show: (subject: { rule: string }) => void) {
    this.#filter = make('input', {
      id: 'rule-filter',
      type: 'search',
      autocomplete: 'off',
      spellcheck: 'false',
    })
    this.#filter.addEventListener('input', () => this.update(this.#rules))
    this.#table = new LiveTable({
      caption: 'Rules with their rates a second and the counts of the last hour',
      columns: columns(show),
      id: idOf,
      empty: 'There is no rule like this.',
      sortedBy: 'Refused/s',
    })
    const label = make('label', { for: 'rule-filter' }, 'Filter')
    this.element = make('div', {}, make('p', { class: 'filter' }, label, this.#filter), this.#table.element)
  }

  update(rules: readonly LiveRule[]): void {
    this.#rules = rules
    const words = this.#filter.value.toLowerCase().split(/\s+/)
    const textOf = ({ id, kind, mode, src }: LiveRule) => `${id} ${kind} ${mode} ${src}`.toLowerCase()
    this.#table.update(rules.filter(rule => words.every(word => textOf(rule).includes(word))))
  }
}

function columns(show: (subject: { rule: string }) => void): TableColumn<LiveRule>[] {
  const sparklines = new Sparklines()
  return [
    { ...links('Rule', idOf, ({ id }) => show({ rule: id })), value: idOf },
    {
      title: 'Mode',
      value: modeWords,
      text: rule => `${modeWords(rule)}${rule.trial ? ' trial' : ''}${isOverridden(rule) ? ' *' : ''}`,
      paint: (cell, rule) => cell.replaceChildren(modeCell(rule)),
    },
    numbers('Refused/s', ({ rates }) => rates.limited, rate),
    numbers('Would/s', ({ rates }) => rates.would_limit, rate),
    numbers('Near/s', ({ rates }) => rates.near, rate, true),
    numbers('Passed/s', ({ rates }) => rates.allowed + rates.near + rates.error, rate, true),
    numbers('Waiting', ({ waiting }) => waiting, count, true),
    numbers('Refused, 1 h', ({ last_hour }) => last_hour?.limited ?? 0),
    numbers('Would, 1 h', ({ last_hour }) => last_hour?.would_limit ?? 0, count, true),
    {
      title: 'Refusals, 1 h',
      wide: true,
      // The text changes every minute, so that the curve is requested again; empty where there is no curve.
      text: ({ last_hour }) =>
        last_hour === null || last_hour.limited + last_hour.would_limit === 0
          ? ''
          : String(Math.floor(Date.now() / 60_000)),
      paint: (cell, rule) => sparklines.draw(cell, rule.id),
    },
  ]
}

const idOf = ({ id }: LiveRule) => id
const isOverridden = ({ mode, declared_mode }: LiveRule) => mode !== declared_mode

function modeCell(rule: LiveRule): HTMLElement {
  const words = rule.trial ? 'trial' : modeWords(rule)
  if (isOverridden(rule)) return state('warn', `${words} (for now)`)
  return state(rule.mode === 'enforce' && !rule.trial ? 'good' : 'quiet', words)
}

const WIDTH = 72
const HEIGHT = 18
/** How long a drawn curve counts as fresh. */
const FRESH_MS = 60_000
/** Points merged into one drawn step: sixty steps in an hour. */
const MERGED = 6

/** Requests one curve at a time, so that fifty rows do not cause a burst of requests. */
class Sparklines {
  readonly #drawnAt = new WeakMap<Element, number>()
  readonly #waiting = new Map<Element, string>()
  #isAsking = false

  /** Draws the rule's curve into the cell when its turn comes; does nothing while the present one is fresh. */
  draw(cell: Element, rule: string): void {
    if (Date.now() - (this.#drawnAt.get(cell) ?? 0) < FRESH_MS) return
    this.#waiting.set(cell, rule)
    void this.#askAll()
  }

  async #askAll(): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    // Lets the table insert the waiting cells first.
    await undefined
    for (const [cell, rule] of this.#waiting) {
      this.#waiting.delete(cell)
      if (!cell.isConnected) {
        this.#drawnAt.delete(cell)
        continue
      }
      this.#drawnAt.set(cell, Date.now())
      // A lost connection is reported elsewhere; the curve stays as it was.
      const history = await askJson<LiveHistory>(`/live/history${query({ rule })}`).catch(() => undefined)
      if (history !== undefined) cell.replaceChildren(curve(history))
    }
    this.#isAsking = false
  }
}

function curve({ points }: LiveHistory): SVGElement {
  const sums: number[] = []
  for (const [i, { limited, would_limit }] of points.entries()) {
    const place = Math.floor(i / MERGED)
    sums[place] = (sums[place] ?? 0) + limited + would_limit
  }
  const top = Math.max(1, ...sums)
  const step = WIDTH / Math.max(1, sums.length - 1)
  const places = sums.map(
    (sum, i) => `${(i * step).toFixed(1)} ${(HEIGHT - 1 - (sum / top) * (HEIGHT - 2)).toFixed(1)}`,
  )
  const attributes = {
    class: 'spark',
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    width: WIDTH,
    height: HEIGHT,
    'aria-hidden': 'true',
  }
  return draw('svg', attributes, draw('path', { d: `M${places.join('L')}` }))
}
