/** The HTTP server of both services. Only this file imports fastify. */
import { METHODS } from 'node:http'
import fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
} from 'fastify'
import { readBody } from './body.js'
import { HttpError } from './errors.js'
import { isAdmitted, NOT_ADMITTED } from './front.js'

export type { FastifySchema as Schema } from 'fastify'

export type Server = FastifyInstance
export type Request = FastifyRequest
export type Reply = FastifyReply

export interface ServerOptions {
  /** The gateway's; without it the service has no gateway in front (see front.ts). */
  readonly secret: string | undefined
  readonly querystringParser?: NonNullable<FastifyServerOptions['routerOptions']>['querystringParser']
}

/** Longer than any URL that Node.js accepts: an id of any length is looked up, and not found. */
const maxParamLength = 64 * 1024

/**
 * A server without routes. It reads no body by itself: a route reads its own with `bodyOf`, when path, method, key and
 * media type are right. What is refused before costs no memory.
 */
export function createServer({ secret, querystringParser }: ServerOptions): Server {
  const server: Server = fastify({
    requestTimeout: 60_000,
    // A URL that cannot be routed is answered like any other error.
    frameworkErrors: (error, request, reply) => server.errorHandler(error, request, reply),
    // The gateway keeps idle connections open; closing waits for requests, not for those.
    forceCloseConnections: 'idle',
    routerOptions: {
      ignoreTrailingSlash: true,
      maxParamLength,
      ...(querystringParser && { querystringParser }),
    },
  })
  for (const method of METHODS.filter(method => method !== 'CONNECT')) {
    if (!server.supportedMethods.includes(method)) server.addHttpMethod(method)
  }
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', (_request, _body, done) => done(null))
  server.addHook('onRequest', async (request, reply) => {
    if (isAdmitted(request.headers, secret)) return
    return reply.code(403).type('application/problem+json').send(NOT_ADMITTED)
  })
  closeUsedConnections(server)
  return server
}

/**
 * Closing waits for the requests under way. Without this it would also wait until the gateway gives up the connections
 * that they came on.
 */
function closeUsedConnections(server: Server): void {
  let closing = false
  server.addHook('preClose', async () => {
    closing = true
  })
  server.addHook('onSend', async (_request, reply) => {
    if (closing) reply.header('connection', 'close')
  })
  // The head was sent before.
  server.addHook('onResponse', async () => {
    if (closing) setImmediate(() => server.server.closeIdleConnections())
  })
}

/** The body of a request; rejects with HttpError. */
export function bodyOf(request: Request, reply: Reply): Promise<Buffer> {
  return readBody(request.raw, reply.raw, sourceOf(request))
}

/** True when a body comes with the request. */
export function hasBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** The client's network as reported by the gateway in front; without one, the address of the peer. */
export function sourceOf(request: Request): string {
  const network = request.headers['x-sluice-network']
  return typeof network === 'string' && network !== '' ? network : request.ip
}

/** Refuses a compressed body, which no route accepts. Throws HttpError 415. */
export function refuseEncoded(request: Request): void {
  if (/^\s*(?:identity\s*)?$/i.test(request.headers['content-encoding'] ?? '')) return
  throw new HttpError(415, 'Send the body without a content encoding.')
}

/** The media type in a Content-Type, without parameters and in lowercase. */
export function mediaTypeOf(contentType: string | undefined): string | undefined {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase()
}

/** Routes the methods of a path other than `allowed`, to be answered with 405, Allow and the words of `refusal`. */
export function refuseOtherMethods(
  server: Server,
  url: string,
  allowed: readonly string[],
  refusal: (method: string, allow: string) => string,
): void {
  const known = allowed.flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  const allow = known.join(', ')
  const answer = async ({ method }: Request, reply: Reply): Promise<never> => {
    reply.header('allow', allow)
    throw new HttpError(405, refusal(method, allow))
  }
  const others = server.supportedMethods.filter(method => !known.includes(method))
  // Before anything else: the method is wrong, whatever else came with it.
  server.route({ method: others, url, onRequest: answer, handler: answer })
}
