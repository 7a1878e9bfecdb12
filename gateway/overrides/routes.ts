/** The overrides of the admin port, for its routes. */
import type { Overrides } from '../admin/overrides.js'
import type { Configuration } from '../configured/load.js'
import type { Log } from '../types.js'
import { accessOverrides } from './access.js'
import { modeOverrides } from './mode.js'
import type { OpenOverrides } from './open.js'
import { quotaOverrides } from './quota.js'
import type { OverrideStore } from './store.js'

/**
 * `loaded` returns the configuration as the files say it; `everywhere` resolves when a change is in force in the other
 * processes of this gateway too: the call that made it is answered then.
 */
export function overrideRoutes(
  { runtime, store }: OpenOverrides,
  loaded: () => Configuration,
  log: Log,
  everywhere: () => Promise<unknown>,
): Overrides {
  const stored: Omit<OverrideStore, 'close'> = {
    get contents() {
      return store.contents
    },
    async change(plan) {
      const result = await store.change(plan)
      await everywhere()
      return result
    },
    refresh: () => store.refresh(),
  }
  return {
    access: accessOverrides(stored, () => runtime.inForce(loaded()), log),
    modes: modeOverrides(stored, loaded, log),
    quotas: quotaOverrides(stored, loaded, log),
    async overrides() {
      await store.refresh()
      return runtime.overrides.list()
    },
  }
}
