/** A client of HTTP/1.1 that sees all of a response. */

import { once } from 'node:events'
import { type Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'

export interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer | string
  readonly agent?: Agent | false
}

export interface Answered {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  readonly trailers: IncomingMessage['trailers']
  /** The interim responses. */
  readonly interim: readonly number[]
}

/** A request that has been begun, but not ended. */
export function begin(
  url: string,
  { method = 'GET', headers = {}, agent = false }: Asked = {},
): ClientRequest {
  return request(url, { method, agent, headers: { host: 'acme.localhost', te: 'trailers', ...headers } })
}

/** Sends a request; rejects if its response is cut. */
export async function ask(url: string, asked: Asked = {}): Promise<Answered> {
  const req = begin(url, asked)
  req.end(asked.body)
  return answerTo(req)
}

export async function answerTo(req: ClientRequest): Promise<Answered> {
  const interim: number[] = []
  req.on('information', ({ statusCode }) => interim.push(statusCode))
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of res) chunks.push(chunk)
  return {
    status: res.statusCode ?? 0,
    headers: res.headers,
    body: Buffer.concat(chunks),
    trailers: res.trailers,
    interim,
  }
}
