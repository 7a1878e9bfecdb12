/** The overrides of the admin port, for its routes. */
import type { AdminOptions } from '../admin/server.js'
import type { Configuration } from '../configured/load.js'
import type { Log } from '../types.js'
import { accessOverrides } from './access.js'
import { modeOverrides } from './mode.js'
import type { Runtime } from './runtime.js'
import type { OverrideStore } from './store.js'

/**
 * `loaded` returns the configuration as the files say it; `everywhere` puts a change in force in the other processes of
 * this gateway, before the call that made it is answered.
 */
export function overrideRoutes(
  runtime: Runtime,
  loaded: () => Configuration,
  log: Log,
  everywhere = async (): Promise<void> => {},
): Pick<AdminOptions, 'access' | 'modes' | 'overrides'> {
  const store = withEach(runtime.store, everywhere)
  return {
    access: accessOverrides(store, () => runtime.inForce(loaded()), log),
    modes: modeOverrides(store, loaded, log),
    async overrides() {
      await store.refresh()
      return runtime.overrides.list()
    },
  }
}

/** `kept`, which calls `changed` after each change and waits for it. */
function withEach(store: OverrideStore, changed: () => Promise<void>): OverrideStore {
  return {
    get contents() {
      return store.contents
    },
    async change(plan) {
      const result = await store.change(plan)
      await changed()
      return result
    },
    refresh: () => store.refresh(),
    close: () => store.close(),
  }
}
