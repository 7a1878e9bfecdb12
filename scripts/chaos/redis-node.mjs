/** One Redis behind a proxy that can harm its connections, with a connection of the run's own to command it. */
import { Redis } from 'ioredis'
import { faultProxy } from '../../dist/test/helpers/faults.js'

/**
 * @param server from the tests' helpers
 * @param announce settings by which others learn of the proxy's port instead of the server's
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
    /** Where clients find it. */
    port: proxy.port,
    /** Where nobody harms it. */
    directPort: server.port,
    pause: server.pause,
    resume: server.resume,
    kill: server.kill,
    /** Comes back, empty. */
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
