/** The throttle of wrong keys, which counts where the gateway counts. */
import { WrongKeys } from '../admin/wrong-keys.js'
import { connectRedis } from '../decide/store/redis-connection.js'
import { networkOf } from '../listen/client.js'
import type { Log } from '../types.js'

export interface OpenWrongKeys {
  readonly wrongKeys: WrongKeys
  close(): void
}

/** Opens it; a connection to Redis of its own keeps it out of the way of requests. */
export function openWrongKeys(redis: string, log: Log): OpenWrongKeys {
  if (redis === '') return { wrongKeys: new WrongKeys({ networkOf, log }), close() {} }
  const connection = connectRedis(redis, log)
  return {
    wrongKeys: new WrongKeys({ redis: connection, networkOf, log }),
    close: () => connection.disconnect(),
  }
}
