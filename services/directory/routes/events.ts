import { Type } from 'typebox'
import type { Directory } from '../model.js'
import { eventSchema, startedSchema } from '../schemas/events.js'
import { listOf, text } from '../schemas/parts.js'
import { endpoint, pageQuery, scopeQuery } from './describe.js'
import { HttpError, query, type Request, type RouteParts, resource, type Server } from './http.js'
import { findDirectory, type Lookup, readPage, readTenantProduct } from './paging.js'

const tag = 'Events'
const startOfFeed = 0

/** The spec's endpoint 10 and the events feed. */
export function addEvents(server: Server, { store, courier }: RouteParts): void {
  resource(server, '/cron/process-events', {
    POST: endpoint(
      {
        tag,
        summary: 'Deliver the queued events',
        description: 'Answers at once while the work continues. For batch mode; call it on a schedule.',
        data: startedSchema,
      },
      async () => {
        courier.processEvents()
        return { message: 'Processing started' }
      },
    ),
  })

  resource(server, '/feed', {
    GET: endpoint(
      {
        tag,
        summary: "Read a directory's events after a cursor",
        description:
          'All events of the last 30 days in order, delivered to a webhook or not. The feed ends with the directory: `dsync.deleted` goes to webhooks only. The answer always has a `cursor`: continue from it, now or later.',
        query: { ...scopeQuery, cursor: Type.Optional(text()), pageLimit: pageQuery.pageLimit },
        data: listOf(eventSchema),
        answer: Type.Object({ data: listOf(eventSchema), cursor: text(), error: Type.Null() }),
      },
      async request => {
        const { id } = await readOneDirectory(request, store)
        const after = readCursor(request, id)
        const { last, events } = await store.feed(id, after ?? startOfFeed, readPage(request).limit)
        if (after !== undefined && (events[0]?.sequence ?? last + 1) > after + 1) {
          throw new HttpError(
            410,
            'Events after this cursor are no longer kept: read users and groups again, then start without a cursor.',
          )
        }
        const cursor = writeCursor(id, events.at(-1)?.sequence ?? after ?? last)
        return { data: events.map(event => JSON.parse(event.body)), cursor, error: null }
      },
    ),
  })
}

/** The directory that the query names, by id or as the only one of its tenant and product. Throws 400 and 404. */
export async function readOneDirectory(request: Request, store: Lookup): Promise<Directory> {
  const directoryId = query(request, 'directoryId')
  if (directoryId) return findDirectory(store, directoryId)
  const [directory, other] = await store.directories(readTenantProduct(request), { offset: 0, limit: 2 })
  if (!directory) throw new HttpError(404, 'There is no directory of this tenant and product.')
  if (other)
    throw new HttpError(400, 'This tenant and product have several directories: name one as directoryId.')
  return directory
}

const writeCursor = (directoryId: string, sequence: number): string =>
  Buffer.from(JSON.stringify([directoryId, sequence])).toString('base64url')

function readCursor(request: Request, directoryId: string): number | undefined {
  const cursor = query(request, 'cursor')
  if (!cursor) return undefined
  try {
    const [id, sequence] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[]
    if (id === directoryId && Number.isSafeInteger(sequence) && Number(sequence) >= 0) return Number(sequence)
  } catch {
    // Rejected below like any other cursor that is not ours.
  }
  throw new HttpError(400, 'cursor does not come from this directory: start without it.')
}
