/** What `GET /state` on the admin port says: what is in force since when, and how the last reload ended. */

import { toldModes } from './acts/mode-desk.js'
import type { Runtime } from './acts/runtime.js'
import type { Generation } from './generation.js'
import type { Reloader } from './reload.js'

/** Plain data, fit for JSON; dates are written as ISO 8601. */
export function describeState(
  { loaded, loadedAt, backends }: Pick<Generation, 'loaded' | 'loadedAt' | 'backends'>,
  { needsRestart, last }: Pick<Reloader, 'needsRestart' | 'last'>,
  { kept }: Pick<Runtime, 'kept'>,
) {
  const { compiled, config } = loaded
  return {
    revision: compiled.policy.revision,
    loadedAt,
    policies: [...config.policies, ...config.access].map(({ file, kind }) => ({ file, kind })),
    backends,
    /** Of rules that only report, or are enforced, for now. */
    modes: toldModes(kept.contents, loaded),
    /** Settings that were changed in the files, but not in this process. */
    needsRestart,
    /** Null until a reload is asked for. */
    lastReload: last ?? null,
  }
}
