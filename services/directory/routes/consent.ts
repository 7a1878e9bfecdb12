import { Type } from 'typebox'
import { answerErrors, HttpError } from '../../http/errors.js'
import { presentsKey } from '../../keys.js'
import { stateLifeMs } from '../external/consent.js'
import { ConnectionFlowError } from '../external/error.js'
import { errorSchema, refTo, text } from '../schemas/parts.js'
import {
  baseUrlOf,
  type Endpoint,
  errorAnswers,
  query,
  type Reply,
  type Request,
  type RouteHandler,
  type RouteParts,
  resource,
  type Server,
  wwwAuthenticate,
} from './http.js'

const longestCode = 4096

/**
 * The consent of a provider's admin: two pages that a browser opens, starting with a one-time link. Mounted at
 * `oauthPath`.
 */
export function addConsent(server: Server, { external, keyHashes, baseUrl, log }: RouteParts): void {
  const { consent } = external
  const redirectUrlOf = (request: Request): string => external.redirectUrl(baseUrlOf(request, baseUrl)) ?? ''
  const hasKey = (request: Request): boolean => presentsKey(request.headers.authorization, keyHashes)

  server.addHook('onSend', async (_request, reply) => {
    // The callback's URL contains a code, that of the link a token.
    reply.headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  })
  answerErrors(server, {
    ...errorAnswers(log),
    challenge: wwwAuthenticate,
    send(refused, request, reply) {
      const { status: code, message } = refused
      // The fault of the provider or of a setting: the message says it all, and anyone can cause it.
      if (refused instanceof ConnectionFlowError)
        log.warn({ status: code, err: message }, 'directory not connected')
      return respond(request, reply, { data: null, error: { message, code } }, message)
    },
  })

  resource(server, '/authorize', {
    GET: page(
      'Send the admin of a directory to the provider for their consent',
      {
        link: 'The token of a one-time link (`POST /{directoryId}/consent-link`)',
        directoryId: 'In place of the link, with a management key: of a directory of type external',
      },
      { 302: 'To the provider; `data.authorizationUrl` is the same address' },
      async (request, reply) => {
        const redirectUrl = redirectUrlOf(request)
        const token = query(request, 'link') || (await ownLink(request))
        const { authorizationUrl, cookie } = await consent.begin(token, redirectUrl)
        reply.header('set-cookie', cookieText(cookie.name, cookie.value, redirectUrl, stateLifeMs / 1000))
        reply.code(302).header('location', authorizationUrl)
        return { data: { authorizationUrl }, error: null }
      },
    ),
  })
  resource(server, '/callback', {
    GET: page(
      "Take the provider's answer and store the tokens",
      {
        code: "The provider's",
        state: 'As it was sent to the provider, at most ten minutes ago',
        error: "The provider's",
      },
      { 200: 'The directory is connected' },
      async (request, reply) => {
        const cookies = cookiesOf(request)
        const resumed = await consent.resume(query(request, 'state') ?? '', cookies, hasKey(request))
        const refused = query(request, 'error')
        if (refused !== undefined) {
          const why = /^[a-z_]{1,40}$/.test(refused) ? ` (${refused})` : ''
          throw new HttpError(400, `The provider gave no consent${why}: open the link again.`)
        }
        const code = query(request, 'code')
        if (!code || code.length > longestCode)
          throw new HttpError(400, 'The query parameter code is required.')
        const redirectUrl = redirectUrlOf(request)
        await resumed.finish(code, redirectUrl)
        reply.header('set-cookie', cookieText(resumed.cookieName, '', redirectUrl, 0))
        const message = 'The directory is connected.'
        return respond(
          request,
          reply,
          { data: { message }, error: null },
          `${message} You may close this page.`,
        )
      },
    ),
  })

  /** Callers with a management key need no link of their own: one is made for them. */
  async function ownLink(request: Request): Promise<string> {
    const directoryId = query(request, 'directoryId')
    if (!hasKey(request)) {
      throw new HttpError(
        401,
        'A consent starts with a one-time link from the management API (POST /{directoryId}/consent-link), or with a management key.',
      )
    }
    if (!directoryId) throw new HttpError(400, 'The query parameter link or directoryId is required.')
    return (await consent.link(directoryId, stateLifeMs)).token
  }
}

/** `Lax`, as the provider redirects the browser back from its own site. */
function cookieText(name: string, value: string, redirectUrl: string, seconds: number): string {
  const { pathname, protocol } = new URL(redirectUrl)
  const secure = protocol === 'https:' ? '; Secure' : ''
  return `${name}=${value}; Path=${pathname}; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`
}

function cookiesOf(request: Request): Map<string, string> {
  const pairs = (request.headers.cookie ?? '').split(';').map(pair => pair.trim().split('='))
  return new Map(pairs.map(([name = '', ...value]) => [name, value.join('=')]))
}

/** Browsers get a sentence, programs the envelope. */
function respond(request: Request, reply: Reply, body: object, sentence: string): unknown {
  if (!String(request.headers.accept).includes('text/html')) return reply.send(body)
  return reply
    .type('text/plain; charset=utf-8')
    .header('x-content-type-options', 'nosniff')
    .send(`${sentence}\n`)
}

/** A page that a browser opens, with its description in the API document. */
function page(
  summary: string,
  parameters: Record<string, string>,
  answers: Record<number, string>,
  handler: RouteHandler,
): Endpoint {
  const described = Object.entries(answers).map(([status, description]) => [
    status,
    Type.Object({}, { description }),
  ])
  const properties = Object.fromEntries(
    Object.entries(parameters).map(([name, description]) => [name, Type.Optional(text(description))]),
  )
  return {
    schema: {
      tags: ['External provider'],
      summary,
      security: [],
      querystring: Type.Object(properties),
      response: { ...Object.fromEntries(described), '4xx': refTo(errorSchema), '5xx': refTo(errorSchema) },
    },
    handler,
  }
}
