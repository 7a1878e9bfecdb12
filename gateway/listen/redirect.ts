/** The port for plain HTTP beside a TLS port: it sends clients to https://, and answers HTTP-01 challenges. */
import { STATUS_CODES } from 'node:http'
import { type ErrorCode, GatewayError } from '../errors.js'
import type { IncomingRequest, OutgoingResponse } from '../message.js'
import { hostOf } from './facts.js'
import { checkHead, checkHeadSize, isAuthority } from './head-rules.js'
import type { Handlers } from './server.js'
import { parseTarget } from './target.js'

export interface RedirectOptions {
  /** The port that speaks TLS. */
  port(): number
  /** What an authority has to find at a token (RFC 8555 section 8.3); undefined if it asks for none such. */
  challenge(token: string): Promise<string | undefined>
  /** Sends an error response. */
  reject(req: IncomingRequest, res: OutgoingResponse, code: ErrorCode): void
  refused: Handlers['refused']
  failed: Handlers['failed']
}

const HTTPS_PORT = 443
const CHALLENGE = /^\/\.well-known\/acme-challenge\/([\w-]{1,128})$/
const ORIGIN = /^https?:\/\/[^/?]*/i

/** Keeps method and body, unlike 301 (RFC 9110 section 15.4.9). */
const REDIRECT = 308

export function redirectHandlers(options: RedirectOptions): Handlers {
  async function request(req: IncomingRequest, res: OutgoingResponse): Promise<void> {
    try {
      const { location, path } = httpsTarget(req, options.port())
      const [, token] = CHALLENGE.exec(path) ?? []
      const answer = token === undefined ? undefined : await options.challenge(token)
      if (answer === undefined) reply(req, res, REDIRECT, ['Location', location], '')
      else reply(req, res, 200, ['Content-Type', 'application/octet-stream'], answer)
    } catch (error) {
      if (!(error instanceof GatewayError)) options.failed?.(error)
      options.reject(req, res, error instanceof GatewayError ? error.code : 'internal')
    }
  }
  return {
    request,
    upgrade: request,
    ...(options.refused && { refused: options.refused }),
    ...(options.failed && { failed: options.failed }),
  }
}

/**
 * The same address at https://. A port in it is replaced by ours; an address without one stays without one, because what
 * is before this gateway may give both ports other numbers. @throws {GatewayError}
 */
function httpsTarget(req: IncomingRequest, port: number): { location: string; path: string } {
  checkHeadSize(req)
  checkHead(req)
  const { path, authority = req.fields.get('host') } = parseTarget(req.method, req.target)
  if (!isAuthority(authority)) throw new GatewayError('bad-host')
  if (path === '*') throw new GatewayError('bad-target')
  const named = hostOf(authority as string)
  const host = /:\d+$/.test(authority as string) && port !== HTTPS_PORT ? `${named}:${port}` : named
  // As spelt by the client: `parseTarget` has found nothing in it that could end the field.
  const target = req.target.replace(ORIGIN, '')
  return { location: `https://${host}${target[0] === '/' ? '' : '/'}${target}`, path }
}

function reply(
  { method }: IncomingRequest,
  res: OutgoingResponse,
  status: number,
  fields: readonly string[],
  body: string,
): void {
  const length = String(Buffer.byteLength(body))
  res.writeHead(status, STATUS_CODES[status] ?? '', [...fields, 'Content-Length', length])
  res.end(method === 'HEAD' ? undefined : body)
}
