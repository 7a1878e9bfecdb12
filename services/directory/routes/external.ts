import { ConnectionError } from '../external/error.js'
import { type ExternalService, oauthPath } from '../external/service.js'
import type { Log } from '../log.js'
import type { Store } from '../store/contract.js'
import { refTo } from './api-schemas.js'
import { baseUrlOf } from './base-url.js'
import { endpoint } from './describe.js'
import {
  type Endpoint,
  explain,
  type Handler,
  HttpError,
  logFault,
  query,
  type Reply,
  type Request,
  resource,
  retryAfter,
  type Server,
} from './http.js'

export interface ExternalRouteParts {
  readonly external: ExternalService
  readonly store: Store
  readonly baseUrl: string | undefined
  readonly log: Log
}

const tag = 'External provider'
const longestCode = 4096

/** The consent of a provider's admin: two pages that a browser opens, without a key. Mounted at `oauthPath`. */
export function addConsent(server: Server, { external, baseUrl, log }: ExternalRouteParts): void {
  const { connection, readState } = external
  const redirectUrlOf = (request: Request): string => external.redirectUrl(baseUrlOf(request, baseUrl)) ?? ''

  server.addHook('onSend', async (_request, reply) => {
    // The address of the callback holds a code.
    reply.headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  })
  server.setErrorHandler((error, request, reply) => {
    const { status, message } = explain(worded(error))
    // The provider's or a setting's fault: the sentence says it all, and anybody may call this.
    if (error instanceof ConnectionError) log.warn({ status, err: message }, 'directory not connected')
    else if (status >= 500) logFault(log, request, error)
    if (status === 503) reply.header('retry-after', retryAfter)
    const body = { data: null, error: { message, code: status } }
    return tell(request, reply.code(status), body, message)
  })

  resource(server, '/authorize', {
    GET: page(
      'Send the admin of a directory to the provider for their consent',
      { directoryId: 'Of a directory of type external' },
      { 302: 'To the provider; `data.authorizationUrl` is the same address' },
      async (request, reply) => {
        const directoryId = query(request, 'directoryId')
        if (!directoryId) throw new HttpError(400, 'The query parameter directoryId is required.')
        const authorizationUrl = await connection.authorizationUrl(directoryId, redirectUrlOf(request))
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
        const directoryId = readState(query(request, 'state') ?? '')
        if (directoryId === undefined) {
          throw new HttpError(
            400,
            `The state is missing, not ours or older than ten minutes: begin anew at ${oauthPath}/authorize.`,
          )
        }
        const refused = query(request, 'error')
        if (refused !== undefined) {
          const why = /^[a-z_]{1,40}$/.test(refused) ? ` (${refused})` : ''
          throw new HttpError(
            400,
            `The provider gave no consent${why}: begin anew at ${oauthPath}/authorize.`,
          )
        }
        const code = query(request, 'code')
        if (!code || code.length > longestCode)
          throw new HttpError(400, 'The query parameter code is required.')
        const tokens = await connection.exchange(directoryId, code, redirectUrlOf(request))
        const { access_token: access, refresh_token: refresh, expiry_date: expires } = tokens
        await connection.store(directoryId, { access, refresh, expires })
        const message = 'The directory is connected.'
        return tell(request, reply, { data: { message }, error: null }, `${message} You may close this page.`)
      },
    ),
  })
}

/** The spec's endpoint 9. Part of the management API. */
export function addSyncExternal(server: Server, { external, store }: ExternalRouteParts): void {
  resource(server, '/cron/sync-external', {
    POST: endpoint(
      {
        tag,
        summary: 'Pull the directories of the external provider',
        description:
          'Answers at once, the work goes on; `external_sync` of each directory says how it went. To be called on a schedule.',
        query: {
          directoryId: { type: 'string', description: 'Only this one' },
          allowDeletions: {
            type: 'boolean',
            default: false,
            description: 'Together with directoryId: delete this once, however many would go',
          },
        },
        data: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
      },
      async request => {
        const directoryId = query(request, 'directoryId') || undefined
        const allowDeletions = flag(request, 'allowDeletions')
        if (directoryId !== undefined) await requireConnected(store, directoryId, allowDeletions)
        else if (allowDeletions) throw new HttpError(400, 'allowDeletions=true needs a directoryId.')
        await external.puller.begin(directoryId, { allowDeletions })
        return { data: { message: 'Sync started' }, error: null }
      },
    ),
  })
}

async function requireConnected(store: Store, directoryId: string, isSpecial: boolean): Promise<void> {
  const directory = await store.directory(directoryId)
  if (!directory) throw new HttpError(404, 'There is no directory with this id.')
  const last = (await store.pullStates([directoryId])).get(directoryId)
  if (isSpecial && last?.state.outcome === 'running' && last.until > Date.now()) {
    throw new HttpError(
      409,
      'This directory is being pulled right now: ask again when external_sync has finished.',
    )
  }
  if (directory.external?.tokens) return
  const why = directory.external
    ? `is not connected yet: its admin begins at ${oauthPath}/authorize?directoryId=${directoryId}`
    : 'is not of type external'
  throw new HttpError(400, `This directory ${why}.`)
}

function flag(request: Request, name: string): boolean {
  const text = query(request, name)
  if (text === undefined || text === '' || text === 'false') return false
  if (text === 'true') return true
  throw new HttpError(400, `The query parameter ${name} must be true or false.`)
}

const worded = (error: unknown): unknown =>
  error instanceof ConnectionError ? new HttpError(error.status, error.message) : error

/** A person with a browser gets a sentence, a program the envelope. */
function tell(request: Request, reply: Reply, body: object, sentence: string): unknown {
  if (!String(request.headers.accept).includes('text/html')) return reply.send(body)
  return reply
    .type('text/plain; charset=utf-8')
    .header('x-content-type-options', 'nosniff')
    .send(`${sentence}\n`)
}

/** A page that needs no key, with what the API document tells of it. */
function page(
  summary: string,
  parameters: Record<string, string>,
  answers: Record<number, string>,
  handler: Handler,
): Endpoint {
  const described = Object.entries(answers).map(([status, description]) => [
    status,
    { description, type: 'object' },
  ])
  const properties = Object.fromEntries(
    Object.entries(parameters).map(([name, description]) => [name, { type: 'string', description }]),
  )
  return {
    schema: {
      tags: [tag],
      summary,
      security: [],
      querystring: { type: 'object', properties },
      response: { ...Object.fromEntries(described), '4xx': refTo('Error'), '5xx': refTo('Error') },
    },
    handler,
  }
}
