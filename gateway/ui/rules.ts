/** The table of all rules: what each allows and refuses, now and in the last hour. */
import type { LiveRule } from '../admin/live-snapshot.js'
import { button, make, state } from './dom.js'
import { count, rate } from './format.js'
import { modeWords } from './history.js'
import { Sparklines } from './sparkline.js'
import { LiveTable, type TableColumn } from './table.js'

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
      id: ({ id }) => id,
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
  const number = (title: string, value: (rule: LiveRule) => number, text = count, wide = false) => ({
    title,
    number: true,
    wide,
    value,
    text: (rule: LiveRule) => text(value(rule)),
  })
  return [
    {
      title: 'Rule',
      value: ({ id }) => id,
      text: ({ id }) => id,
      paint: (cell, { id }) => cell.replaceChildren(button(id, () => show({ rule: id }), { class: 'link' })),
    },
    {
      title: 'Mode',
      value: modeWords,
      text: rule => `${modeWords(rule)}${rule.trial ? ' trial' : ''}${isOverridden(rule) ? ' *' : ''}`,
      paint: (cell, rule) => cell.replaceChildren(modeCell(rule)),
    },
    number('Refused/s', ({ rates }) => rates.limited, rate),
    number('Would/s', ({ rates }) => rates.would_limit, rate),
    number('Near/s', ({ rates }) => rates.near, rate, true),
    number('Passed/s', ({ rates }) => rates.allowed + rates.near + rates.error, rate, true),
    number('Refused, 1 h', ({ last_hour }) => last_hour?.limited ?? 0, count),
    number('Would, 1 h', ({ last_hour }) => last_hour?.would_limit ?? 0, count, true),
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

const isOverridden = ({ mode, declared_mode }: LiveRule) => mode !== declared_mode

function modeCell(rule: LiveRule): HTMLElement {
  const words = rule.trial ? 'trial' : modeWords(rule)
  if (isOverridden(rule)) return state('warn', `${words} (for now)`)
  return state(rule.mode === 'enforce' && !rule.trial ? 'good' : 'quiet', words)
}
