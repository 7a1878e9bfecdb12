/** All observer plugins as one observer that never throws. */
import type { Observer } from '../plugin.js'
import type { Log } from '../types.js'

/** An observer and the name of its plugin. */
export interface NamedObserver {
  readonly name: string
  readonly observer: Observer
}

/** Calls each observer; one that throws is logged and does not affect the others. */
export function observeAll(observers: readonly NamedObserver[], log: Log): Observer {
  return {
    finished(event) {
      for (const { name, observer } of observers) {
        try {
          observer.finished(event)
        } catch (error) {
          log.warn({ err: error, plugin: name }, 'an observer failed')
        }
      }
    },
  }
}
