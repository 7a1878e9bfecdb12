/**
 * Where the admin port is, from gateway.yaml alone: a health check runs every few seconds and must not load, and judge,
 * a whole configuration, which may have been edited since the gateway started.
 */
import { isListenHost } from './checks/listen-host.js'
import { expandIn } from './environment.js'
import { gatewayFileOf, readText } from './files.js'
import { ADMIN_DEFAULT } from './words/words.js'
import { parseYaml } from './yaml.js'

export type AdminAddress = { readonly host: string; readonly port: number } | { readonly fault: string }

/** The address, or a sentence that says why it cannot be told; `path` is gateway.yaml or its folder. */
export function adminAddress(path: string, env: NodeJS.ProcessEnv): AdminAddress {
  const file = gatewayFileOf(path)
  const read = readText(file)
  if ('fault' in read) return { fault: `${file}: ${read.fault}` }
  const { data, faults } = parseYaml(read.text, expandIn(env))
  const written = (data as { admin?: { host?: unknown; port?: unknown } } | null | undefined)?.admin
  const { host = ADMIN_DEFAULT.host, port = ADMIN_DEFAULT.port } = written ?? {}
  const fault = faults.find(({ path }) => path.length === 0 || path[0] === 'admin')
  if (fault !== undefined) return { fault: `${file}:${fault.line}:${fault.col} ${fault.message}` }
  if (typeof host !== 'string' || !isListenHost(host) || typeof port !== 'number')
    return { fault: `${file}: admin.host and admin.port are not an address.` }
  return { host, port }
}
