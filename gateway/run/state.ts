/** What `GET /state` on the admin port says: what is in force since when, and how the last reload ended. */
import type { Generation } from './generation.js'
import type { LastReload, Reloader } from './reload.js'
import type { BackendState } from './upstreams.js'

/** Plain data, fit for JSON; dates are written as ISO 8601. */
export interface State {
  readonly revision: string
  readonly loadedAt: Date
  readonly policies: readonly { readonly file: string; readonly kind: string }[]
  readonly backends: readonly BackendState[]
  /** Settings that were changed in the files, but not in this process. */
  readonly needsRestart: readonly string[]
  /** Null until a reload is asked for. */
  readonly lastReload: LastReload | null
}

export function describeState(
  { loaded, loadedAt, backends }: Pick<Generation, 'loaded' | 'loadedAt' | 'backends'>,
  { needsRestart, last }: Pick<Reloader, 'needsRestart' | 'last'>,
): State {
  const { compiled, config } = loaded
  return {
    revision: compiled.policy.revision,
    loadedAt,
    policies: config.policies.map(({ file, kind }) => ({ file, kind })),
    backends,
    needsRestart,
    lastReload: last ?? null,
  }
}
