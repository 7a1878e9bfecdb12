/** The body of `GET /state` on the admin port: what is in force since when, and how the last reload ended. */
import { reportModes } from '../overrides/mode.js'
import type { Host } from './host.js'
import type { Reloader } from './reload.js'

/** Plain data, fit for JSON; dates are written as ISO 8601. */
export async function describeState(
  host: Pick<Host, 'inForce' | 'backends' | 'untrustedForwarding' | 'overrides' | 'workers'>,
  { needsRestart, last }: Pick<Reloader, 'needsRestart' | 'last'>,
): Promise<object> {
  const { loaded, loadedAt } = host.inForce
  const { compiled, config } = loaded
  const { workers } = host
  return {
    revision: compiled.policy.revision,
    loadedAt,
    policies: [...config.policies, ...config.access].map(({ file, kind }) => ({ file, kind })),
    backends: await host.backends(),
    /** The last request of the past minute with X-Forwarded-For from an address that is not in trustedProxies. */
    untrustedForwarding: await host.untrustedForwarding(),
    /** Modes of rules set on the admin port. */
    modes: reportModes(host.overrides.runtime.contents, loaded),
    /** Settings changed in the files that take effect only after a restart. */
    needsRestart,
    /** Null until the first reload. */
    lastReload: last ?? null,
    ...(workers && { workers }),
  }
}
