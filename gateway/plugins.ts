/** The built-in plugins, one line each. They know no more of the gateway than a third party's would. */
import { inFlight } from './decide/in-flight.js'
import { volumetric } from './decide/volumetric.js'
import { projectLimits } from './decide/window.js'
import { apiKey } from './identify/api-key.js'
import { header } from './identify/header.js'
import { host } from './identify/host.js'
import { path } from './identify/path.js'
import type { IdentifyPlugin, LimitPlugin } from './plugin.js'

export const identifyPlugins: readonly IdentifyPlugin[] = [host, header, apiKey, path]
export const limitPlugins: readonly LimitPlugin[] = [projectLimits, inFlight, volumetric]

/** The plugins' schemas by name, as the config schema takes them in. */
export const pluginSchemas = {
  identify: Object.fromEntries(identifyPlugins.map(({ name, schema }) => [name, schema])),
  limit: Object.fromEntries(limitPlugins.map(({ name, schema }) => [name, schema])),
}
