import type { RouteChanges } from '../route.js'
import type { UpstreamSettings } from './transport.js'

/** The settings of an upstream, as each of the routes to it changes them. */
export class RouteSettings {
  readonly #settings: UpstreamSettings
  readonly #changed = new WeakMap<RouteChanges, UpstreamSettings>()

  constructor(settings: UpstreamSettings) {
    this.#settings = settings
  }

  /** The route's timeouts replace the upstream's; of two limits of a body the smaller one holds. */
  for(changes: RouteChanges | undefined): UpstreamSettings {
    if (changes === undefined || (changes.timeouts === undefined && changes.maxBody === undefined))
      return this.#settings
    const known = this.#changed.get(changes)
    if (known !== undefined) return known
    const { timeouts, maxBody } = this.#settings
    const most = Math.min(maxBody ?? Number.POSITIVE_INFINITY, changes.maxBody ?? Number.POSITIVE_INFINITY)
    const changed = { ...this.#settings, timeouts: { ...timeouts, ...changes.timeouts }, maxBody: most }
    this.#changed.set(changes, changed)
    return changed
  }
}
