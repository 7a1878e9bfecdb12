import { randomUUID } from 'node:crypto'
import { Type } from 'typebox'
import type { DirectoryCore } from '../core.js'
import { maxSetupLinks, setupLinkSeconds } from '../limits.js'
import {
  type LinkLifetime,
  lifetimeOf,
  newSetupLinkSchema,
  type SetupLinkView,
  setupLinkSchema,
} from '../schemas/directory.js'
import { listOf, refTo } from '../schemas/parts.js'
import { hashKey, newSecret } from '../secrets.js'
import type { SetupLink } from '../store/link-contract.js'
import { endpoint } from './describe.js'
import { baseUrlOf, HttpError, param, type Request, resource, type Server } from './http.js'
import { findDirectory } from './paging.js'

export const setupPath = '/api/scim/setup'

/** The set-up links of directories. All methods throw HttpError. */
export interface SetupLinks {
  /** `url` contains the token, which is not stored. */
  create(
    directoryId: string,
    seconds: number | undefined,
    baseUrl: string,
  ): Promise<SetupLinkView & { url: string }>
  list(directoryId: string): Promise<SetupLinkView[]>
  /** Ends all links of the directory, or the one with that id. */
  end(directoryId: string, linkId?: string): Promise<void>
}

export const hashOfLink = (token: string): string => hashKey(token).toString('base64url')

const time = (ms: number): string => new Date(ms).toISOString()
const view = ({ id, created, until, shown }: SetupLink): SetupLinkView => ({
  id,
  created_at: time(created),
  expires_at: time(until),
  token_shown_at: shown === undefined ? null : time(shown),
})

export function createSetupLinks({ store }: Pick<DirectoryCore, 'store'>): SetupLinks {
  return {
    async create(directoryId, seconds = setupLinkSeconds.standard, baseUrl) {
      const directory = await findDirectory(store, directoryId)
      if (directory.external) {
        throw new HttpError(400, `This directory is pulled: POST /${directoryId}/consent-link connects it.`)
      }
      const now = Date.now()
      const token = newSecret()
      const link = { id: `lnk_${randomUUID()}`, hash: hashOfLink(token), directoryId, created: now }
      const stored = { ...link, until: now + seconds * 1000 }
      if (!(await store.addSetupLink(stored, now))) {
        throw new HttpError(409, `A directory has at most ${maxSetupLinks} set-up links: end one.`)
      }
      return { ...view(stored), url: `${baseUrl}${setupPath}/page?link=${token}` }
    },
    async list(directoryId) {
      await findDirectory(store, directoryId)
      return (await store.setupLinks(directoryId, Date.now())).map(view)
    },
    async end(directoryId, linkId) {
      await findDirectory(store, directoryId)
      const ended = await store.dropSetupLinks(directoryId, linkId)
      if (linkId !== undefined && ended === 0) {
        throw new HttpError(404, 'There is no set-up link with this id in this directory.')
      }
    },
  }
}

const tag = 'Directories'
const path = ['directoryId']

/** Links to the page on which a customer's admin connects their provider. Part of the management API. */
export function addSetupLinks(
  server: Server,
  { store, baseUrl }: Pick<DirectoryCore, 'store'> & { readonly baseUrl: string | undefined },
): void {
  const links = createSetupLinks({ store })
  const id = (request: Request): string => param(request, 'directoryId')

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
      async (request, reply) => {
        const { lifetime_seconds } = request.body as LinkLifetime
        const made = await links.create(id(request), lifetime_seconds, baseUrlOf(request, baseUrl))
        reply.code(201)
        return { data: made, error: null }
      },
    ),
    GET: endpoint(
      { tag, summary: "List a directory's set-up links", path, data: listOf(setupLinkSchema) },
      async request => ({ data: await links.list(id(request)), error: null }),
    ),
    DELETE: endpoint(
      { tag, summary: "End all of a directory's set-up links", path, data: Type.Null() },
      async request => {
        await links.end(id(request))
        return { data: null, error: null }
      },
    ),
  })
  resource(server, '/:directoryId/setup-links/:linkId', {
    DELETE: endpoint(
      { tag, summary: 'End a set-up link', path: ['directoryId', 'linkId'], data: Type.Null() },
      async request => {
        await links.end(id(request), param(request, 'linkId'))
        return { data: null, error: null }
      },
    ),
  })
}
