import { setTimeout as wait } from 'node:timers/promises'
import { isJsonObject } from '../../json.js'
import type { JsonObject } from '../model.js'
import { ProviderError } from './error.js'
import type { Bounds } from './settings.js'

export interface ProviderCall {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as a form. */
  readonly form?: Readonly<Record<string, string>>
}

export interface ProviderAnswer {
  readonly status: number
  /** Empty when the response was not a JSON object. */
  readonly body: JsonObject
}

/** Calls the provider until there is a usable response: 200, or a refusal other than "too many requests". */
export type CallProvider = (call: ProviderCall, signal: AbortSignal) => Promise<ProviderAnswer>

interface Attempt {
  readonly answer?: ProviderAnswer
  /** Absent when the response is usable. */
  readonly problem?: string
  /** The wait the provider asks for, in ms. */
  readonly retryAfter?: number | undefined
}

/** Reasons in Google's 403 that mean what 429 means elsewhere. */
const tooMany = /^(userRateLimitExceeded|rateLimitExceeded|quotaExceeded)$/

/**
 * Calls with limits on time, size and attempts. Redirects are not followed: the token is for this host only. Network
 * failures, 5xx and cut or broken responses are retried with growing waits; 429 when the provider says so. Throws
 * ProviderError.
 */
export function createCaller(bounds: Bounds): CallProvider {
  async function attempt(call: ProviderCall, signal: AbortSignal): Promise<Attempt> {
    const { method, url, headers = {}, form } = call
    const request = {
      method,
      headers: { accept: 'application/json', 'user-agent': 'Sluice', ...headers },
      redirect: 'manual' as const,
      signal: AbortSignal.any([signal, AbortSignal.timeout(bounds.answerMs)]),
      ...(form ? { body: new URLSearchParams(form) } : {}),
    }
    try {
      const response = await fetch(url, request)
      const { status } = response
      const body = parse(await readText(response, bounds.answerBytes))
      if (status === 429 || status === 503 || (status === 403 && isTooMany(body))) {
        const retryAfter = readRetryAfter(response.headers.get('retry-after'))
        return { answer: { status, body: body ?? {} }, problem: `answered ${status}`, retryAfter }
      }
      if (status >= 500) return { answer: { status, body: body ?? {} }, problem: `answered ${status}` }
      if (status === 200 && !body) return { problem: 'sent an answer that is not a JSON object' }
      return { answer: { status, body: body ?? {} } }
    } catch (error) {
      signal.throwIfAborted()
      return { problem: reason(error as Error, bounds) }
    }
  }

  return async (call, signal) => {
    const what = `${call.method} ${call.url.pathname}`
    for (let tries = 1; ; tries++) {
      signal.throwIfAborted()
      const { answer, problem, retryAfter } = await attempt(call, signal)
      if (problem === undefined && answer) return answer
      const pause = Math.max(retryAfter ?? 0, bounds.firstWaitMs * 2 ** (tries - 1))
      if ((retryAfter ?? 0) > bounds.longestWaitMs) {
        throw new ProviderError(
          `${what}: the provider asks us to wait ${Math.ceil((retryAfter ?? 0) / 1000)} s`,
          answer?.status,
        )
      }
      if (tries >= bounds.attempts) {
        throw new ProviderError(`${what}: the provider ${problem}, ${tries} times`, answer?.status)
      }
      await wait(Math.min(pause, bounds.longestWaitMs), undefined, { signal }).catch(() => undefined)
    }
  }
}

class TooLarge extends Error {}

async function readText(response: Response, maxBytes: number): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new TooLarge()
    parts.push(chunk)
  }
  return Buffer.concat(parts).toString('utf8')
}

function parse(text: string): JsonObject | undefined {
  try {
    const body: unknown = JSON.parse(text)
    return isJsonObject(body) ? body : undefined
  } catch {
    return undefined
  }
}

function isTooMany(body: JsonObject | undefined): boolean {
  const errors = isJsonObject(body?.error) ? body.error.errors : undefined
  return (Array.isArray(errors) ? errors : []).some(
    item => isJsonObject(item) && typeof item.reason === 'string' && tooMany.test(item.reason),
  )
}

/** Seconds or a date (RFC 9110, section 10.2.3), as ms from now. */
function readRetryAfter(text: string | null): number | undefined {
  if (text === null) return undefined
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}

function reason(error: Error, { answerMs, answerBytes }: Bounds): string {
  if (error.name === 'TimeoutError') return `did not answer within ${answerMs} ms`
  if (error instanceof TooLarge) return `sent more than ${answerBytes} bytes`
  const { code } = (error.cause ?? error) as NodeJS.ErrnoException
  return `could not be reached${typeof code === 'string' ? ` (${code})` : ''}`
}
