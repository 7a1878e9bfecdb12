/** The throttle for wrong keys, which counts in the same store as the gateway. */
import { WrongKeys } from '../admin/wrong-keys.js'
import { connectRedis } from '../decide/redis/connection.js'
import { KEY_SPACE } from '../decide/redis/key-space.js'
import { networkOf } from '../listen/client.js'
import type { Log } from '../types.js'

/** It has its own connection to Redis, so that it does not delay requests. */
export function openWrongKeys(redis: string, log: Log): { readonly wrongKeys: WrongKeys; close(): void } {
  if (redis === '') return { wrongKeys: new WrongKeys({ networkOf, log }), close() {} }
  const connection = connectRedis(redis, log)
  const shared = { storeClient: connection, keyPrefix: `${KEY_SPACE}wrong-keys` }
  return {
    wrongKeys: new WrongKeys({ redis: shared, networkOf, log }),
    close: () => connection.disconnect(),
  }
}
