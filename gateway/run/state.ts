/** The body of `GET /state` on the admin port: what is in force since when, and how the last reload ended. */

import type { UntrustedForwarding } from '../observe/untrusted-forwarding.js'
import { reportModes } from '../overrides/mode.js'
import type { Runtime } from '../overrides/runtime.js'
import type { Generation } from './generation.js'
import type { Reloader } from './reload.js'

/** Plain data, fit for JSON; dates are written as ISO 8601. */
export function describeState(
  { loaded, loadedAt, backends }: Pick<Generation, 'loaded' | 'loadedAt' | 'backends'>,
  { needsRestart, last }: Pick<Reloader, 'needsRestart' | 'last'>,
  { store: kept }: Pick<Runtime, 'store'>,
  untrustedForwarding: UntrustedForwarding | null,
) {
  const { compiled, config } = loaded
  return {
    revision: compiled.policy.revision,
    loadedAt,
    policies: [...config.policies, ...config.access].map(({ file, kind }) => ({ file, kind })),
    backends,
    /** The last request of the past minute with X-Forwarded-For from an address that is not in trustedProxies. */
    untrustedForwarding,
    /** Modes of rules set on the admin port. */
    modes: reportModes(kept.contents, loaded),
    /** Settings changed in the files that take effect only after a restart. */
    needsRestart,
    /** Null until the first reload. */
    lastReload: last ?? null,
  }
}
