/** The built-in plugins. They use the same interface to the gateway as third-party plugins. */
import type { TSchema } from 'typebox'
import { inFlight } from './decide/in-flight.js'
import { projectLimits } from './decide/project-limits.js'
import { volumetric } from './decide/volumetric.js'
import { apiKey } from './identify/api-keys/api-key.js'
import { clientCertificate } from './identify/client-certificate.js'
import { header } from './identify/header.js'
import { host } from './identify/host.js'
import { jwt } from './identify/jwt/jwt.js'
import { path } from './identify/path.js'
import type { IdentifyPlugin, LimitPlugin, ObservePlugin, Plugin } from './plugin.js'

/** The plugins that a configuration may use. */
export interface PluginSet {
  readonly identify: readonly IdentifyPlugin[]
  readonly limit: readonly LimitPlugin[]
  readonly observe: readonly ObservePlugin[]
  /** Their schemas by name, for the config schema. */
  readonly schemas: {
    readonly [kind in Plugin['kind']]: Readonly<Record<string, TSchema>>
  }
}

export const builtIn = pluginSet([
  host,
  header,
  apiKey,
  jwt,
  clientCertificate,
  path,
  projectLimits,
  inFlight,
  volumetric,
])

/** Schemas of the built-in plugins, from which the shipped editor schemas are made. */
export const pluginSchemas = builtIn.schemas

/** Sorts plugins by their kind. */
export function pluginSet(plugins: readonly Plugin[]): PluginSet {
  const identify = plugins.filter((plugin): plugin is IdentifyPlugin => plugin.kind === 'identify')
  const limit = plugins.filter((plugin): plugin is LimitPlugin => plugin.kind === 'limit')
  const observe = plugins.filter((plugin): plugin is ObservePlugin => plugin.kind === 'observe')
  const schemas = { identify: schemasOf(identify), limit: schemasOf(limit), observe: schemasOf(observe) }
  return { identify, limit, observe, schemas }
}

function schemasOf(plugins: readonly Plugin[]): Record<string, TSchema> {
  return Object.fromEntries(plugins.map(({ name, schema }) => [name, schema]))
}
