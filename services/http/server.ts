/** The HTTP server of both services. The home of fastify. */
import { METHODS } from 'node:http'
import fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
} from 'fastify'
import { readBody } from './body.js'
import { isAdmitted, NOT_ADMITTED } from './front.js'

export type { FastifySchema as Schema } from 'fastify'

export type Server = FastifyInstance
export type Request = FastifyRequest
export type Reply = FastifyReply

export interface ServerOptions {
  /** The gateway's; without it the service has no gateway in front (see front.ts). */
  readonly secret: string | undefined
  /** Answers a URL that cannot be routed. */
  readonly refuseUrl: (error: unknown, request: Request, reply: Reply) => void
  readonly querystringParser?: NonNullable<FastifyServerOptions['routerOptions']>['querystringParser']
}

/** Longer than any URL that Node.js accepts: an id of any length is looked up, and not found. */
const maxParamLength = 64 * 1024

/**
 * A server without routes. It reads no body by itself: a route reads its own with `bodyOf`, when path, method, key and
 * media type are right. What is refused before costs no memory.
 */
export function createServer({ secret, refuseUrl, querystringParser }: ServerOptions): Server {
  const server = fastify({
    requestTimeout: 60_000,
    frameworkErrors: refuseUrl,
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

/** The body of a request; rejects with BodyRefused. */
export function bodyOf(request: Request, reply: Reply): Promise<Buffer> {
  return readBody(request.raw, reply.raw, sourceOf(request))
}

/** True when a body comes with the request. */
export function hasBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** The client's network as reported by the gateway in front; without one, the address of the peer. */
export function sourceOf(request: Request): string {
  const told = request.headers['x-sluice-network']
  return typeof told === 'string' && told !== '' ? told : request.ip
}

/** True unless the body is compressed, which no route accepts. */
export function isPlain(request: Request): boolean {
  return /^\s*(?:identity\s*)?$/i.test(request.headers['content-encoding'] ?? '')
}

/** True for Fastify's error for QUERY without a Content-Type: known paths have refused that method before. */
export function isUnknownPath(error: unknown): boolean {
  return (error as { code?: string }).code === 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE'
}

/** Routes the methods of a path other than `allowed`: `refuse` makes the error of a 405, Allow is set. */
export function refuseOtherMethods(
  server: Server,
  url: string,
  allowed: readonly string[],
  refuse: (request: Request, allow: string) => Error,
): void {
  const allow = allowed.flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  const answer = async (request: Request, reply: Reply): Promise<never> => {
    reply.header('allow', allow.join(', '))
    throw refuse(request, allow.join(', '))
  }
  const others = server.supportedMethods.filter(method => !allow.includes(method))
  // Before anything else: the method is wrong, whatever else came with it.
  server.route({ method: others, url, onRequest: answer, handler: answer })
}
