/** The acts of the admin port, for its routes. */
import type { AdminOptions } from '../../admin/server.js'
import type { Log } from '../../types.js'
import type { Loaded } from '../load.js'
import { accessDesk } from './access-desk.js'
import { modeDesk } from './mode-desk.js'
import type { Runtime } from './runtime.js'

/** `loaded` returns the configuration as the files say it. */
export function actDesks(
  runtime: Runtime,
  loaded: () => Loaded,
  log: Log,
): Pick<AdminOptions, 'access' | 'modes' | 'acts'> {
  return {
    access: accessDesk(runtime.kept, () => runtime.inForce(loaded()), log),
    modes: modeDesk(runtime.kept, loaded, log),
    async acts() {
      await runtime.kept.refresh()
      return runtime.acts.list()
    },
  }
}
