import { Type } from 'typebox'
import { linkSeconds } from '../limits.js'
import { linkSchema, type NewConsentLink, newLinkSchema } from '../schemas/directory.js'
import { startedSchema } from '../schemas/events.js'
import { text } from '../schemas/parts.js'
import type { Store } from '../store/contract.js'
import { endpoint } from './describe.js'
import {
  baseUrlOf,
  HttpError,
  param,
  query,
  type Request,
  type RouteParts,
  resource,
  type Server,
} from './http.js'
import { findDirectory } from './paging.js'

const tag = 'External provider'

/** One-time links to the consent of a directory's admin. Part of the management API. */
export function addConsentLinks(server: Server, { external, store, baseUrl }: RouteParts): void {
  const { consent } = external
  resource(server, '/:directoryId/consent-link', {
    POST: endpoint(
      {
        tag,
        summary: "Make a one-time link for the directory's admin",
        description:
          'Whoever opens `url` and gives their consent connects the directory, even one that is already connected. The link works once; connecting ends all other links of the directory.',
        path: ['directoryId'],
        body: newLinkSchema,
        data: linkSchema,
        status: 201,
      },
      async request => {
        const { lifetime_seconds: seconds = linkSeconds.standard } = request.body as NewConsentLink
        const { token, until } = await consent.link(param(request, 'directoryId'), seconds * 1000)
        const url = `${external.authorizeUrl(baseUrlOf(request, baseUrl))}?link=${token}`
        return { url, expires_at: new Date(until).toISOString() }
      },
    ),
    DELETE: endpoint(
      { tag, summary: "End all of the directory's links", path: ['directoryId'], data: Type.Null() },
      async request => {
        const { id } = await findDirectory(store, param(request, 'directoryId'))
        await store.dropLinks(id)
      },
    ),
  })
}

/** The spec's endpoint 9. Part of the management API. */
export function addSyncExternal(server: Server, { external, store }: RouteParts): void {
  resource(server, '/cron/sync-external', {
    POST: endpoint(
      {
        tag,
        summary: 'Pull the directories of the external provider',
        description:
          'Answers at once while the work continues; `external_sync` of each directory says how it went. Call it on a schedule.',
        query: {
          directoryId: Type.Optional(text('Only this one')),
          allowDeletions: Type.Optional(
            Type.Boolean({
              default: false,
              description: 'With directoryId: in this pull, delete however many are gone',
            }),
          ),
        },
        data: startedSchema,
      },
      async request => {
        const directoryId = query(request, 'directoryId') || undefined
        const allowDeletions = flag(request, 'allowDeletions')
        if (directoryId !== undefined) await requireConnected(store, directoryId, allowDeletions)
        else if (allowDeletions) throw new HttpError(400, 'allowDeletions=true needs a directoryId.')
        await external.puller.begin(directoryId, { allowDeletions })
        return { message: 'Sync started' }
      },
    ),
  })
}

async function requireConnected(store: Store, directoryId: string, isSpecial: boolean): Promise<void> {
  const directory = await findDirectory(store, directoryId)
  const last = (await store.pullStates([directoryId])).get(directoryId)
  if (isSpecial && last?.state.outcome === 'running' && last.until > Date.now()) {
    throw new HttpError(
      409,
      'This directory is being pulled right now: try again when external_sync has finished.',
    )
  }
  if (directory.external?.tokens) return
  const why = directory.external
    ? `is not connected yet: send its admin a link, which POST /${directoryId}/consent-link makes`
    : 'is not of type external'
  throw new HttpError(400, `This directory ${why}.`)
}

function flag(request: Request, name: string): boolean {
  const text = query(request, name)
  if (text === undefined || text === 'false') return false
  if (text === 'true') return true
  throw new HttpError(400, `The query parameter ${name} must be true or false.`)
}
