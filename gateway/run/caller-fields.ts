/** Which request fields tell a configuration's callers apart, besides the well-known ones. */
import { isProxyHeader } from '../../config/formats.js'
import { type Config, isProjectLimits } from '../../config/load.js'
import { header } from '../identify/header.js'

const KEY_PREFIX = 'header:'

/** Lower-case names, sorted: the order in which files list them changes nothing. */
export interface CallerFields {
  /** Believed, and passed on, from a trusted proxy only. */
  readonly proxyHeaders: readonly string[]
  /** Believed from anyone: rules count by them, or a plugin identifies the project by them. */
  readonly countedHeaders: readonly string[]
}

export function callerFields({ gateway, policies }: Pick<Config, 'gateway' | 'policies'>): CallerFields {
  const vouched = new Set(gateway.proxyHeaders)
  const counted = new Set<string>()
  for (const { plugin, header: written } of gateway.identify as readonly Identifier[]) {
    if (typeof written !== 'string') continue
    const name = written.toLowerCase()
    if (plugin !== header.name) counted.add(name)
    else if (isProxyHeader(name)) vouched.add(name)
  }
  for (const policy of policies) {
    if (isProjectLimits(policy)) continue
    for (const part of policy.document.rules.flatMap(rule => rule.key)) {
      if (part.startsWith(KEY_PREFIX)) counted.add(part.slice(KEY_PREFIX.length))
    }
  }
  return { proxyHeaders: [...vouched].sort(), countedHeaders: [...counted].sort() }
}

/** An entry of `identify`: the plugins that take the name of a field call it `header`. */
interface Identifier {
  readonly plugin: string
  readonly header?: unknown
}
