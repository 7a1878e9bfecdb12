/** Loaded into the gateway's process before it starts: tells, when asked, what that process holds. */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { queryObjects } from 'node:v8'
import { Pool } from 'undici'

/** What must not pile up, even where it keeps nothing open. */
const TYPES = { sockets: Socket, requests: IncomingMessage, answers: ServerResponse, 'upstream pools': Pool }

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
