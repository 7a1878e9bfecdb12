/**
 * Loaded into each process of the gateway before it starts: on SIGUSR2 it writes what that process holds to a file. A
 * signal, because the IPC channel to a worker belongs to its supervisor.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { queryObjects } from 'node:v8'
import { ClientConnection } from '../../gateway/http1/client-connection.js'
import { ConnectionPool } from '../../gateway/http1/pool.js'
import { ServerConnection } from '../../gateway/http1/server-connection.js'
import { ServerResponse } from '../../gateway/http1/server-response.js'
import { StreamBody } from '../../gateway/listen/stream-body.js'
import { StreamResponse } from '../../gateway/listen/stream-response.js'

/** Objects that must not pile up, even if they keep nothing open. */
const TYPES: Record<string, new (...args: never[]) => object> = {
  sockets: Socket,
  'clients’ connections': ServerConnection,
  answers: ServerResponse,
  'answers over HTTP/2': StreamResponse,
  'uploads over HTTP/2': StreamBody,
  'upstream connections': ClientConnection,
  'upstream pools': ConnectionPool,
}

/** What a process holds. */
export interface Held {
  /** Open handles and requests, by kind. */
  readonly resources: Readonly<Record<string, number>>
  readonly objects: Readonly<Record<string, number>>
  readonly rss: number
  readonly heapUsed: number
  readonly external: number
}

process.on('SIGUSR2', () => {
  // Twice: what finalizers release is freed only by the second collection.
  globalThis.gc?.()
  globalThis.gc?.()
  const resources: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  const objects: Record<string, number> = {}
  for (const [name, type] of Object.entries(TYPES)) objects[name] = queryObjects(type, { format: 'count' })
  const { rss, heapUsed, external } = process.memoryUsage()
  const file = join(process.env.DATA_DIR ?? '', `held-by-${process.pid}.json`)
  // Renamed into place, so that nobody reads half a file.
  writeFileSync(
    `${file}.part`,
    JSON.stringify({ resources, objects, rss, heapUsed, external } satisfies Held),
  )
  renameSync(`${file}.part`, file)
})
