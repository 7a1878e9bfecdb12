/** The embedded welcome service: one page on `/` that says what the bundled configuration serves. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isAdmitted, NOT_ADMITTED } from '../http/front.js'
import { html, pageKind } from '../http/page.js'

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

/** Origins, without a trailing slash. */
interface Links {
  readonly here: string
  readonly admin: string
}

const places = ({ here, admin }: Links): readonly (readonly [url: string, what: string])[] => [
  [`${here}/self-service/registration`, 'a registration form, made from a JSON Schema'],
  [`${here}/api/v1/docs`, 'the API of the directory (SCIM in, webhooks out)'],
  [`${admin}/ui/`, 'what the gateway decides, counts and measures'],
]

const calls = ({ here, admin }: Links): readonly (readonly [call: string, what: string])[] => [
  [`curl -i ${here}/sessions/whoami`, 'RateLimit says what is left'],
  [
    `for i in $(seq 11); do curl -s -o /dev/null -w '%{http_code} ' ${here}/sessions/whoami; done`,
    'the last one is refused',
  ],
  [`npx sluice explain GET /sessions/whoami --live ${admin}`, 'why'],
  ['npx sluice serve --upstream http://127.0.0.1:3000 --limit 100/m', 'a service of your own'],
]

const END =
  'This page is the upstream "welcome" of gateway.yaml. Remove its route when something of your own answers here.'

function textOf(links: Links): string {
  const part = (pairs: readonly (readonly [string, string])[]) =>
    pairs.map(([first, what]) => `  ${first}\n      ${what}\n`).join('')
  return `Sluice is running.\n\nOpen:\n${part(places(links))}\nTry:\n${part(calls(links))}\n${END}\n`
}

const pages = pageKind({
  style: `
h2 { font-size: 1.1rem; margin: 1.5rem 0 .5rem; }
dd { margin: 0 0 .75rem; }
code { display: block; padding: .5rem .75rem; border-radius: .375rem; background: light-dark(#eef0f3, #17181a); overflow-wrap: anywhere; }
`,
  referrer: 'no-referrer',
})

const PAGE_HEADERS = pages.headers

function pageOf(links: Links): string {
  const content = html`<h2>Open</h2>
<dl>
${places(links).map(([url, what]) => html`<dt><a href="${url}">${url}</a></dt><dd>${what}</dd>\n`)}</dl>
<h2>Try in a terminal</h2>
<dl>
${calls(links).map(([call, what]) => html`<dt><code>${call}</code></dt><dd>${what}</dd>\n`)}</dl>
<p>${END}</p>`
  return pages.write({ title: 'Sluice is running', content })
}
