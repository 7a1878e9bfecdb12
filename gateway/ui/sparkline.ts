/** A small curve of an hour's refusals beside a rule, requested only if there were any. */
import type { LiveHistory } from '../admin/live-snapshot.js'
import { askJson, query } from './api.js'
import { draw } from './dom.js'

const WIDTH = 72
const HEIGHT = 18
/** How long a drawn curve counts as fresh. */
const FRESH_MS = 60_000
/** Points merged into one drawn step: sixty steps in an hour. */
const MERGED = 6

/** Requests one curve at a time, so that fifty rows do not cause a burst of requests. */
export class Sparklines {
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
