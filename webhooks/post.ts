import * as http from 'node:http'
import * as https from 'node:https'
import { lookupFor, type ResolveHost, refusedTarget, type TargetRules } from './target.js'

/** Posts one webhook body and returns the status. Rejects with the reason when there is no response. */
export interface Poster {
  post(url: string, body: string, headers: Record<string, string>): Promise<number>
  close(): void
}

const timeoutMs = 15_000
const maxAnswerBytes = 64 * 1024

/** Webhook calls over keep-alive connections; redirects are never followed, their status counts like any other. */
export function createPoster(rules: TargetRules, resolve?: ResolveHost): Poster {
  const settings = (protocol: 'http:' | 'https:') => ({
    ...{ keepAlive: true, maxFreeSockets: 64, lookup: lookupFor(protocol, rules, resolve) },
  })
  const agents = { 'http:': new http.Agent(settings('http:')), 'https:': new https.Agent(settings('https:')) }
  let closed = false

  async function post(
    address: string,
    body: string,
    headers: Record<string, string>,
    signal = AbortSignal.timeout(timeoutMs),
  ): Promise<number> {
    const url = new URL(address)
    const refused = refusedTarget(url, rules)
    if (refused) throw new Error(refused)
    const secure = url.protocol === 'https:'
    const request = (secure ? https : http).request(url, {
      method: 'POST',
      agent: agents[secure ? 'https:' : 'http:'],
      headers: {
        'user-agent': 'Sluice',
        ...headers,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
      signal,
    })
    request.end(body)
    try {
      return await statusOf(request)
    } catch (error) {
      // The receiver closed the kept-alive connection just then, which is no failure: retried until a new connection
      // fails.
      if (!closed && request.reusedSocket && isReset(error)) {
        return post(address, body, headers, signal)
      }
      throw reason(error as Error)
    }
  }

  return {
    post: (address, body, headers) => post(address, body, headers),
    close() {
      closed = true
      for (const agent of Object.values(agents)) agent.destroy()
    },
  }
}

/** Resolves with the status even when the body is too long, too slow or cut off. */
function statusOf(request: http.ClientRequest): Promise<number> {
  return new Promise((resolve, reject) => {
    let status: number | undefined
    request.on('error', error => (status === undefined ? reject(error) : resolve(status)))
    request.on('response', response => {
      status = response.statusCode ?? 0
      let received = 0
      response.on('data', (chunk: Buffer) => {
        received += chunk.length
        if (received > maxAnswerBytes) response.destroy()
      })
      response.on('error', () => undefined)
      response.on('close', () => resolve(status ?? 0))
    })
  })
}

const isReset = (error: unknown): boolean =>
  ['ECONNRESET', 'EPIPE'].includes((error as NodeJS.ErrnoException).code ?? '')

const reason = (error: Error): Error =>
  /^(Timeout|Abort)Error$/.test(error.name) ? new Error(`no answer within ${timeoutMs} ms`) : error
