/** A plain HTTP client and server, for tests of what a user would see. */
import { once } from 'node:events'
import { type Agent, createServer, type IncomingHttpHeaders, type RequestListener, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Scope } from './scope.js'

export interface Sent {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly agent?: Agent | false
  readonly signal?: AbortSignal
}

export interface Received {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
  json<T = Record<string, unknown>>(): T
}

/** Sends one request; `headers.host` selects the project. Rejects when the connection ends before the response does. */
export async function send(url: string, { body, ...options }: Sent = {}): Promise<Received> {
  const sent = request(url, options)
  sent.end(body)
  const [answer] = await once(sent, 'response')
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString()
  return { status: answer.statusCode, headers: answer.headers, body: text, json: () => JSON.parse(text) }
}

/** Starts an upstream, on a free port unless one is given, and closes it when the test ends. */
export async function startApp(t: Scope, handler: RequestListener, port = 0): Promise<string> {
  const server = createServer(handler)
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
