/** The acts of all operators, the newest first, with buttons to undo them. */
import type { LiveAct, LiveSnapshot } from '../admin/live-snapshot.js'
import { openAccess, openUndo } from './act-forms.js'
import { button, find, make } from './dom.js'
import { moment, time } from './format.js'

export class ActsTable {
  #drawn = ''

  constructor() {
    find('act-buttons').append(
      button('Deny a network…', () => openAccess('deny')),
      button('Exempt a network…', () => openAccess('exempt')),
    )
  }

  /** Redrawn only when they have changed, so that a focused button keeps the focus. */
  update({ acts }: LiveSnapshot): void {
    const drawn = JSON.stringify(acts)
    if (drawn === this.#drawn) return
    this.#drawn = drawn
    find('acts').replaceChildren(...acts.map(actItem))
    find('no-acts').hidden = acts.length > 0
  }
}

function actItem(act: LiveAct): HTMLElement {
  const { what, at, by, until } = act
  const end = until === null ? '' : `, until ${time(until)}`
  const when = make('time', { datetime: at }, time(at))
  const item = make('li', {}, when, make('span', {}, `${what} (by ${by}${end})`))
  item.title = moment(at)
  if (act.undo) item.append(button('Undo…', () => openUndo(act), { 'aria-label': `Undo: ${what}` }))
  return item
}
