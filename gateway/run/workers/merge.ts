/** Merges the answers of several workers. */
import type { Slots } from '../../decide/held-slots.js'
import { type MetricsSnapshot, mergeSnapshots } from '../../observe/series.js'
import type { BackendState } from '../upstreams.js'

/** One line for each address: requests of all workers; left out when one of them leaves it out. */
export function mergeBackends(all: readonly (readonly BackendState[])[]): BackendState[] {
  const merged = new Map<string, BackendState>()
  for (const backend of all.flat()) {
    const address = JSON.stringify([backend.upstream, backend.backend])
    const before = merged.get(address)
    merged.set(address, before === undefined ? backend : together(before, backend))
  }
  return [...merged.values()]
}

function together(one: BackendState, other: BackendState): BackendState {
  return {
    ...one,
    ejected: one.ejected || other.ejected,
    requests: one.requests + other.requests,
    webSockets: one.webSockets + other.webSockets,
  }
}

/** The `most` oldest of all. */
export function mergeSlots(all: readonly Slots[], most: number): Slots {
  const slots = all.flatMap(one => one.slots).sort((one, other) => other.age_ms - one.age_ms)
  return { total: all.reduce((sum, { total }) => sum + total, 0), slots: slots.slice(0, most) }
}

/** The series of all workers; what one has counted stays when it has ended, for a counter must not fall. */
export class WorkerSeries {
  /** What each worker told last, by its id. */
  readonly #last = new Map<number, MetricsSnapshot>()
  #ended: readonly MetricsSnapshot[] = []

  /** One worker told this. */
  told(worker: number, snapshot: MetricsSnapshot): void {
    this.#last.set(worker, snapshot)
  }

  /** A worker has ended: its last report is all that is known of it. */
  ended(worker: number): void {
    const last = this.#last.get(worker)
    if (last !== undefined) this.#ended = [...this.#ended, lasting(last)]
    this.#last.delete(worker)
  }

  /** The answer to a scrape; `own` are the supervisor's series. */
  async text(own: MetricsSnapshot): Promise<string> {
    const folding = this.#ended
    if (folding.length > 1) {
      const folded = await mergeSnapshots(folding).snapshot()
      // Another scrape may have done so, too.
      if (this.#ended[0] === folding[0]) this.#ended = [folded, ...this.#ended.slice(folding.length)]
    }
    return mergeSnapshots([own, ...this.#ended, ...this.#last.values()]).text()
  }
}

/** Without the gauges, which are gone with their process. */
function lasting(snapshot: MetricsSnapshot): MetricsSnapshot {
  return snapshot.filter(({ type }) => type === 'counter' || type === 'histogram')
}
