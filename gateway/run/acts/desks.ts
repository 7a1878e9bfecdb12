/** The acts of the admin port, for its routes. */
import type { AdminOptions } from '../../admin/server.js'
import type { Log } from '../../types.js'
import type { Loaded } from '../load.js'
import { accessDesk } from './access-desk.js'
import type { Kept } from './kept.js'
import { modeDesk } from './mode-desk.js'
import type { Runtime } from './runtime.js'

/**
 * `loaded` returns the configuration as the files say it; `everywhere` puts a change in force in the other processes of
 * this gateway, before the call that made it is answered.
 */
export function actDesks(
  runtime: Runtime,
  loaded: () => Loaded,
  log: Log,
  everywhere = async (): Promise<void> => {},
): Pick<AdminOptions, 'access' | 'modes' | 'acts'> {
  const kept = withEach(runtime.kept, everywhere)
  return {
    access: accessDesk(kept, () => runtime.inForce(loaded()), log),
    modes: modeDesk(kept, loaded, log),
    async acts() {
      await kept.refresh()
      return runtime.acts.list()
    },
  }
}

/** `kept`, which calls `changed` after each change and waits for it. */
function withEach(kept: Kept, changed: () => Promise<void>): Kept {
  return {
    get contents() {
      return kept.contents
    },
    async change(plan) {
      const result = await kept.change(plan)
      await changed()
      return result
    },
    refresh: () => kept.refresh(),
    close: () => kept.close(),
  }
}
