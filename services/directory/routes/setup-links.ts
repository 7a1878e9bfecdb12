import { randomUUID } from 'node:crypto'
import { Type } from 'typebox'
import { maxSetupLinks, setupLinkSeconds } from '../limits.js'
import {
  type LinkLifetime,
  lifetimeOf,
  type NewSetupLinkView,
  newSetupLinkSchema,
  type SetupLinkView,
  setupLinkSchema,
} from '../schemas/directory.js'
import { listOf, refTo } from '../schemas/parts.js'
import { hashOfToken, newSecret } from '../secrets.js'
import type { SetupLink } from '../store/contract.js'
import { endpoint } from './describe.js'
import { baseUrlOf, HttpError, param, type Request, type RouteParts, resource, type Server } from './http.js'
import { findDirectory } from './paging.js'

export const setupPath = '/api/scim/setup'

const tag = 'Directories'
const path = ['directoryId']

/** Links to the page on which a customer's admin connects their provider. Part of the management API. */
export function addSetupLinks(server: Server, { store, baseUrl }: RouteParts): void {
  const find = (request: Request) => findDirectory(store, param(request, 'directoryId'))

  resource(server, '/:directoryId/setup-links', {
    POST: endpoint(
      {
        tag,
        summary: "Make a set-up link for the customer's admin",
        description:
          'Whoever opens `url` sees the steps at their identity provider and the SCIM base URL, and can show the SCIM secret once or make a new one.',
        path,
        body: lifetimeOf(setupLinkSeconds),
        data: refTo(newSetupLinkSchema),
        status: 201,
      },
      async (request): Promise<NewSetupLinkView> => {
        const { lifetime_seconds: seconds = setupLinkSeconds.standard } = request.body as LinkLifetime
        const { id: directoryId, external } = await find(request)
        if (external) {
          throw new HttpError(400, `This directory is pulled: POST /${directoryId}/consent-link connects it.`)
        }
        const created = Date.now()
        const token = newSecret()
        const times = { created, until: created + seconds * 1000 }
        const link = { id: `lnk_${randomUUID()}`, hash: hashOfToken(token), directoryId, ...times }
        if (!(await store.addSetupLink(link, created))) {
          throw new HttpError(409, `A directory has at most ${maxSetupLinks} set-up links: end one.`)
        }
        return { ...view(link), url: `${baseUrlOf(request, baseUrl)}${setupPath}/page?link=${token}` }
      },
    ),
    GET: endpoint(
      { tag, summary: "List a directory's set-up links", path, data: listOf(setupLinkSchema) },
      async request => {
        const { id } = await find(request)
        return (await store.setupLinks(id, Date.now())).map(view)
      },
    ),
    DELETE: endpoint(
      { tag, summary: "End all of a directory's set-up links", path, data: Type.Null() },
      async request => {
        await store.dropSetupLinks((await find(request)).id)
      },
    ),
  })
  resource(server, '/:directoryId/setup-links/:linkId', {
    DELETE: endpoint(
      { tag, summary: 'End a set-up link', path: ['directoryId', 'linkId'], data: Type.Null() },
      async request => {
        const { id } = await find(request)
        if ((await store.dropSetupLinks(id, param(request, 'linkId'))) > 0) return
        throw new HttpError(404, 'There is no set-up link with this id in this directory.')
      },
    ),
  })
}

const time = (ms: number): string => new Date(ms).toISOString()
const view = ({ id, created, until, shown }: SetupLink): SetupLinkView => ({
  id,
  created_at: time(created),
  expires_at: time(until),
  token_shown_at: shown === undefined ? null : time(shown),
})
