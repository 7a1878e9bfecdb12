/** One Redis behind a proxy that can disturb its connections, with a direct connection to control it. */
import { Redis } from 'ioredis'
import { faultProxy } from '../../dist/test/helpers/faults.js'

/**
 * @param server from the test helpers
 * @param announce settings that make other nodes use the proxy's port instead of the server's
 * @param port where clients connect, when that is not the server's plain port
 */
export async function behindProxy(server, { announce = () => [], port = server.port } = {}) {
  const proxy = await faultProxy(port)
  const admin = new Redis(server.port, '127.0.0.1', {
    maxRetriesPerRequest: null,
    enableReadyCheck: false,
    retryStrategy: () => 50,
  })
  admin.on('error', () => undefined)
  const introduce = async () => {
    for (const [name, value] of announce(proxy.port)) await admin.config('SET', name, value)
  }
  await introduce()
  return {
    proxy,
    admin,
    /** Where clients connect: the proxy. */
    port: proxy.port,
    /** Bypasses the proxy. */
    directPort: server.port,
    pause: server.pause,
    resume: server.resume,
    kill: server.kill,
    /** Starts the server again, empty. */
    async restart() {
      await server.restart()
      await introduce()
    },
    async isMaster() {
      return /role:master/.test(await admin.info('replication'))
    },
    async stop() {
      admin.disconnect()
      await Promise.all([proxy.stop(), server.stop()])
    },
  }
}
