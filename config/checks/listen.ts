/** Checks of the two ports that a schema cannot express. Pure. */

import type { FileFault, Readable } from '../readable.js'
import { isLoopback, isSameAddress } from './listen-host.js'

export function checkListeners(read: Readable): FileFault[] {
  return [...checkAdmin(read), ...checkPorts(read), ...checkWorkers(read)]
}

/** The admin port must not be open to a network without a key. */
function checkAdmin({ gateway, gatewayFile: file }: Readable): FileFault[] {
  if (gateway === undefined || gateway.admin.key !== '' || isLoopback(gateway.admin.host)) return []
  const message = `The admin port on ${gateway.admin.host} needs a key: set admin.key, such as "\${ADMIN_KEY:-}" with ADMIN_KEY or ADMIN_KEY_FILE in the environment, or listen on 127.0.0.1.`
  return [{ file, path: ['admin', 'host'], message }]
}

/** Both ports cannot be opened at one address. */
function checkPorts({ gateway, gatewayFile: file }: Readable): FileFault[] {
  if (gateway === undefined || gateway.listen.port === 0) return []
  const { listen, admin } = gateway
  if (listen.port !== admin.port || !isSameAddress(listen.host, admin.host)) return []
  const message = `Port ${admin.port} is also that of listen.port on ${listen.host}: the two must differ.`
  return [{ file, path: ['admin', 'port'], message }]
}

/** Also for `auto` on one core: a file must not be valid on one machine and invalid on another. */
function checkWorkers({ gateway, gatewayFile: file }: Readable): FileFault[] {
  if (gateway === undefined || gateway.listen.workers === 1 || gateway.redis !== '') return []
  const message = `Several workers need Redis, where they count together: set redis, such as "\${REDIS_URL:-}" with REDIS_URL in the environment, or write workers: 1.`
  return [{ file, path: ['listen', 'workers'], message }]
}
