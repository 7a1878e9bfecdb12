/** The overrides of all operators, the newest first, with buttons to undo them. */
import type { LiveOverride, LiveSnapshot } from '../admin/live-snapshot.js'
import { button, find, make } from './dom.js'
import { moment, time } from './format.js'
import { bucketsIn, openNegotiation } from './negotiate.js'
import { openAccess, openUndo } from './override-forms.js'

export class OverridesTable {
  #drawn = ''
  #buckets: readonly string[] = []

  constructor() {
    find('override-buttons').append(
      button('Deny a network…', () => openAccess('deny')),
      button('Exempt a network…', () => openAccess('exempt')),
      button('Negotiate a limit…', () => openNegotiation(this.#buckets)),
    )
  }

  /** Redrawn only when they have changed, so that a focused button keeps the focus. */
  update({ overrides, rules }: LiveSnapshot): void {
    this.#buckets = bucketsIn(rules)
    const drawn = JSON.stringify(overrides)
    if (drawn === this.#drawn) return
    this.#drawn = drawn
    find('overrides').replaceChildren(...overrides.map(overrideItem))
    find('no-overrides').hidden = overrides.length > 0
  }
}

function overrideItem(override: LiveOverride): HTMLElement {
  const { what, at, by, until } = override
  const end = until === null ? '' : `, until ${time(until)}`
  const when = make('time', { datetime: at }, time(at))
  const item = make('li', {}, when, make('span', {}, `${what} (by ${by}${end})`))
  item.title = moment(at)
  if (override.undo) item.append(button('Undo…', () => openUndo(override), { 'aria-label': `Undo: ${what}` }))
  return item
}
