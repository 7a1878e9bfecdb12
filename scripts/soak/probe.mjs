/** Loaded into the gateway's process before it starts: tells, when asked, what that process holds. */
import { Socket } from 'node:net'
import { queryObjects } from 'node:v8'
import { ClientConnection } from '../../dist/gateway/http1/client-connection.js'
import { ConnectionPool } from '../../dist/gateway/http1/pool.js'
import { ServerConnection } from '../../dist/gateway/http1/server-connection.js'
import { ServerResponse } from '../../dist/gateway/http1/server-response.js'

/** What must not pile up, even where it keeps nothing open. */
const TYPES = {
  sockets: Socket,
  'clients’ connections': ServerConnection,
  answers: ServerResponse,
  'upstream connections': ClientConnection,
  'upstream pools': ConnectionPool,
}

process.on('message', () => {
  // Twice, because what a finalizer lets go is free only then.
  globalThis.gc()
  globalThis.gc()
  const resources = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  const objects = {}
  for (const [name, type] of Object.entries(TYPES)) objects[name] = queryObjects(type, { format: 'count' })
  const { rss, heapUsed, external } = process.memoryUsage()
  process.send({ resources, objects, rss, heapUsed, external })
})
process.channel.unref()
