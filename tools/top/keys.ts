/** The effect of keys in `sluice top`. Pure. */

import type { TopView } from './screen.js'
import { SECTION_NAMES, SECTIONS } from './sections.js'

export const FIRST_VIEW: TopView = { only: undefined, sorts: {}, from: 0 }

const LEFT = '\x1b[D'
const RIGHT = '\x1b[C'
const UP = '\x1b[A'
const DOWN = '\x1b[B'
const PAGE_UP = '\x1b[5~'
const PAGE_DOWN = '\x1b[6~'
const SCROLLS: Readonly<Record<string, number>> = { [UP]: -1, [DOWN]: 1, [PAGE_UP]: -10, [PAGE_DOWN]: 10 }
const QUIT = ['q', 'Q', '\x03', '\x04']

/** The view after a key; undefined means quit. Unknown keys change nothing. */
export function pressed(sequence: string, view: TopView): TopView | undefined {
  if (QUIT.includes(sequence)) return undefined
  if (sequence === 'a' || sequence === '\x1b') return { ...view, only: undefined, from: 0 }
  const only = SECTION_NAMES.find(name => name.startsWith(sequence) && sequence.length === 1)
  if (only !== undefined) return { ...view, only, from: 0 }
  const by = SCROLLS[sequence]
  if (by !== undefined) return { ...view, from: Math.max(0, view.from + by) }
  if (sequence === LEFT || sequence === '<') return sorted(view, -1)
  if (sequence === RIGHT || sequence === '>') return sorted(view, 1)
  return view
}

/** When all sections are shown, this sorts the first one. */
function sorted(view: TopView, by: 1 | -1): TopView {
  const { only = 'rules', sorts } = view
  const most = SECTIONS[only].sorts
  return { ...view, sorts: { ...sorts, [only]: ((sorts[only] ?? 0) + by + most) % most } }
}
