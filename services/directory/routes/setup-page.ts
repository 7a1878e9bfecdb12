import { answerErrors, HttpError } from '../../http/errors.js'
import { maxNewTokens, maxOldOfLinks } from '../limits.js'
import type { Directory } from '../model.js'
import { goodOnes, hashOfToken } from '../secrets.js'
import { renderRefusal, renderSetupPage, setupHeaders } from '../setup/page.js'
import { providerOf } from '../setup/steps.js'
import type { SetupLink } from '../store/contract.js'
import { rotateScimSecret } from './directory-input.js'
import {
  baseUrlOf,
  errorAnswers,
  query,
  type Reply,
  type Request,
  type RouteHandler,
  type RouteParts,
  resource,
  type Server,
} from './http.js'

interface Opened {
  readonly link: SetupLink
  readonly directory: Directory
}

/**
 * The page of a set-up link: whoever has the link acts as the customer's admin. Opening it shows no secret, so that a
 * preview of the link in a chat uses nothing up. Mounted at `setupPath`.
 */
export function addSetupPage(server: Server, { store, box, directories, log, baseUrl }: RouteParts): void {
  server.addHook('onSend', async (_request, reply) => {
    reply.headers(setupHeaders)
  })
  answerErrors(server, {
    ...errorAnswers(log),
    unknownPath: 'There is nothing at this address.',
    send: ({ message }, _request, reply) => send(reply, renderRefusal(message)),
  })

  async function open(request: Request): Promise<Opened> {
    const link = await store.setupLink(hashOfToken(query(request, 'link') ?? ''), Date.now())
    const directory = link && (await store.directory(link.directoryId))
    if (link && directory) return { link, directory }
    throw new HttpError(403, 'This link is unknown or has expired: ask for a new one.')
  }

  async function firstUserAt({ id }: Directory): Promise<string | undefined> {
    const [first] = await store.resources({ directoryId: id }, 'user', { offset: 0, limit: 1 })
    return first?.created
  }

  async function show(request: Request, reply: Reply, opened: Opened, secret?: string): Promise<unknown> {
    const { directory, link } = opened
    const page = renderSetupPage({
      name: directory.name,
      provider: providerOf(query(request, 'provider'), directory.type),
      endpoint: `${baseUrlOf(request, baseUrl)}/api/scim/v2.0/${directory.id}`,
      link: query(request, 'link') ?? '',
      secret,
      shownAt: link.shown === undefined ? undefined : new Date(link.shown).toISOString(),
      isSpent: (link.made ?? 0) >= maxNewTokens,
      deactivated: directory.deactivated,
      firstUserAt: await firstUserAt(directory),
    })
    return send(reply, page)
  }

  const secretOf = ({ id, scimSecret }: Directory): string => box.open(scimSecret, id, 'scim')

  const showSecret: RouteHandler = async (request, reply) => {
    const opened = await open(request)
    const isFirst = await store.showOnce(opened.link.hash, Date.now())
    return show(request, reply, await open(request), isFirst ? secretOf(opened.directory) : undefined)
  }

  /** Only after the first secret was shown: until then the page offers that one. */
  const makeSecret: RouteHandler = async (request, reply) => {
    const opened = await open(request)
    if (opened.link.shown === undefined) return show(request, reply, opened)
    const renewed = (before: Directory): Directory => {
      if (goodOnes(before.oldScimSecrets).length < maxOldOfLinks) return rotateScimSecret(before, {}, box)
      throw new HttpError(
        409,
        'Too many recent tokens are still valid: ask the person who sent you this link.',
      )
    }
    // Throws before counting: a refused attempt must not use the link up.
    renewed(opened.directory)
    const { link } = opened
    if (!(await store.countNewSecret(link.hash, Date.now()))) return show(request, reply, await open(request))
    const directory = await directories.change(opened.directory.id, renewed)
    log.info({ directory: opened.directory.id, link: link.id }, 'a set-up link made a new SCIM secret')
    return show(request, reply, opened, directory && secretOf(directory))
  }

  resource(server, '/page', { GET: async (request, reply) => show(request, reply, await open(request)) })
  resource(server, '/token', { POST: showSecret })
  resource(server, '/new-token', { POST: makeSecret })
  resource(server, '/status', {
    GET: async request => {
      const { directory } = await open(request)
      return { first_user_at: (await firstUserAt(directory)) ?? null }
    },
  })
}

const send = (reply: Reply, page: string): Reply =>
  reply.type('text/html; charset=utf-8').serializer(String).send(page)
