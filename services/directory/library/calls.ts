import { randomBytes } from 'node:crypto'
import type { Core } from '../core.js'
import { HttpError, type Method } from '../routes/http.js'
import { addManagement } from '../routes/management.js'
import type { Refusal } from '../schemas/refusals.js'
import { hashKey } from '../secrets.js'
import { createAsk } from './ask.js'

/** What the library answers with, as the management API does; `code` is an HTTP status. */
export type Answer<Data> = { readonly data: Data; readonly error: null } | Refusal
/** A page of a list; ask on with `pageToken` while there is one. */
export type Listed<Item> = (Answer<Item[]> & { readonly pageToken?: string }) | Refusal

/** One call of the management API. `path` has its parts below `/api/v1/directory-sync`. */
export type Call = <Result>(
  method: Method,
  path: readonly string[],
  sent?: { readonly query?: object | undefined; readonly body?: unknown },
) => Promise<Result | Refusal>

/** Calls the routes of the management API in this process, behind a key that nobody else knows. */
export function createCalls(core: Core): Call {
  const key = randomBytes(32).toString('base64url')
  const headers = { authorization: `Api-Key ${key}` }
  const ask = createAsk(core, server => {
    const { baseUrl = '', webhookTargets } = core.settings
    const keys = { keyHashes: [hashKey(key)], wrongKey: async () => undefined }
    addManagement(server, { ...core, ...keys, baseUrl, webhookTargets })
  })

  return async (method, path, { query, body } = {}) => {
    try {
      refuseNull(query ?? {})
      const answer = await ask({ method, path, query, headers, body })
      const next = /[?&]pageToken=([^&>]+)>; rel="next"/.exec(answer.headers.link ?? '')?.[1]
      // The answer for members carries `data` alone: over HTTP the place of its next page is a header.
      return {
        error: null,
        ...(next ? { pageToken: decodeURIComponent(next) } : {}),
        ...JSON.parse(answer.text),
      }
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
      return { data: null, error: { message: error.message, code: error.status } }
    }
  }
}

/** Null where a page begins is as if it were absent; elsewhere it would widen the question to everybody. */
function refuseNull(query: object): void {
  for (const [name, value] of Object.entries(query)) {
    if (value !== null || /^(?:cursor|page)/.test(name)) continue
    throw new HttpError(400, `${name} must not be null: leave it out to ask for all.`)
  }
}
