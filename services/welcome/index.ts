/** The embedded welcome service: one page on `/` that says what the bundled configuration serves. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isAdmitted, NOT_ADMITTED } from '../http/front.js'
import { PAGE_HEADERS, pageOf, textOf } from './page.js'

interface StartOptions {
  readonly env: NodeJS.ProcessEnv
  /** Of the gateway in front: only requests with it are answered. */
  readonly gatewaySecret?: string
}

/** Starts it on a free port of 127.0.0.1. ADMIN_HOST and ADMIN_PORT say where the page finds the admin port. */
export async function start({ env, gatewaySecret }: StartOptions) {
  const { ADMIN_HOST = '', ADMIN_PORT } = env
  // A wildcard address is not one to connect to.
  const host = ['', '0.0.0.0', '::'].includes(ADMIN_HOST) ? '127.0.0.1' : ADMIN_HOST
  const admin = `http://${host.includes(':') ? `[${host}]` : host}:${ADMIN_PORT || '8081'}`
  const server = createServer((req, res) => {
    if (isAdmitted(req.headers, gatewaySecret)) answer(req, res, admin)
    else res.writeHead(403, { 'content-type': 'application/problem+json' }).end(NOT_ADMITTED)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    notes: [],
    metrics: async () => '',
    trouble: () => undefined,
    async close(): Promise<void> {
      server.closeAllConnections()
      server.close()
    },
  }
}

function answer(req: IncomingMessage, res: ServerResponse, admin: string): void {
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    res.writeHead(405, { allow: 'GET, HEAD' }).end()
    return
  }
  const links = { here: originOf(req), admin }
  // Browsers name HTML in Accept, curl accepts anything.
  const isBrowser = req.headers.accept?.includes('text/html') === true
  const body = isBrowser ? pageOf(links) : textOf(links)
  const headers = isBrowser ? PAGE_HEADERS : { 'content-type': 'text/plain; charset=utf-8' }
  res.writeHead(200, { ...headers, vary: 'accept', 'content-length': Buffer.byteLength(body) })
  res.end(req.method === 'HEAD' ? undefined : body)
}

/** The address that the client used, from the gateway's headers. */
function originOf({ headers }: IncomingMessage): string {
  const { host = '' } = headers
  const scheme = headers['x-forwarded-proto'] === 'https' ? 'https' : 'http'
  return /^[A-Za-z0-9.:[\]-]+$/.test(host) ? `${scheme}://${host}` : 'http://127.0.0.1:8080'
}
