/** Merges the answers of several workers. */
import type { Slots } from '../../decide/held-slots.js'
import { type MetricsSnapshot, mergeSnapshots } from '../../observe/series.js'
import type { BackendState } from '../upstreams.js'

/** One entry per address: requests are added up; it counts as ejected when any worker has ejected it. */
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

/** The `most` oldest slots of all workers. */
export function mergeSlots(all: readonly Slots[], most: number): Slots {
  const slots = all.flatMap(one => one.slots).sort((one, other) => other.age_ms - one.age_ms)
  return { total: all.reduce((sum, { total }) => sum + total, 0), slots: slots.slice(0, most) }
}

/** The series of all workers. The counts of a worker remain after it has ended, because a counter must not fall. */
export class WorkerSeries {
  /** The last report of each worker, by its id. */
  readonly #last = new Map<number, MetricsSnapshot>()
  #ended: readonly MetricsSnapshot[] = []

  /** Records a worker's report. */
  report(worker: number, snapshot: MetricsSnapshot): void {
    this.#last.set(worker, snapshot)
  }

  /** A worker has ended: the counts of its last report are kept. */
  ended(worker: number): void {
    const last = this.#last.get(worker)
    if (last !== undefined) this.#ended = [...this.#ended, lasting(last)]
    this.#last.delete(worker)
  }

  /** The response to a scrape; `own` are the supervisor's series. */
  async text(own: MetricsSnapshot): Promise<string> {
    const folding = this.#ended
    if (folding.length > 1) {
      const folded = await mergeSnapshots(folding).snapshot()
      // A concurrent scrape may already have replaced it.
      if (this.#ended[0] === folding[0]) this.#ended = [folded, ...this.#ended.slice(folding.length)]
    }
    return mergeSnapshots([own, ...this.#ended, ...this.#last.values()]).text()
  }
}

/** The snapshot without gauges, which end with their process. */
function lasting(snapshot: MetricsSnapshot): MetricsSnapshot {
  return snapshot.filter(({ type }) => type === 'counter' || type === 'histogram')
}
