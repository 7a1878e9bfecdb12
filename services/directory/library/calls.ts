import { randomBytes } from 'node:crypto'
import type { DirectoryCore } from '../core.js'
import { HttpError, type Method } from '../routes/http.js'
import { addManagement } from '../routes/management.js'
import type { Refusal } from '../schemas/refusals.js'
import { hashKey } from '../secrets.js'
import { createAsk } from './ask.js'

/** What the library returns, in the form of the management API; `code` is an HTTP status. */
export type LibraryAnswer<Data> = { readonly data: Data; readonly error: null } | Refusal
/** A page of a list; continue with `pageToken` while there is one. */
export type Listed<Item> = (LibraryAnswer<Item[]> & { readonly pageToken?: string }) | Refusal

/** One call of the management API. `path` holds the segments below `/api/v1/directory-sync`. */
export type CallManagement = <Result>(
  method: Method,
  path: readonly string[],
  sent?: { readonly query?: object | undefined; readonly body?: unknown },
) => Promise<Result | Refusal>

/** Calls the routes of the management API in this process, with a key that nobody else knows. */
export function createCalls(core: DirectoryCore): CallManagement {
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
      const next = /[?&]pageToken=([^?&>]+)>; rel="next"/.exec(answer.headers.link ?? '')?.[1]
      // The response for members has no `pageToken` of its own: over HTTP its next page is in a header.
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

/** Null for a page's start counts as absent; elsewhere it would widen the query to everything. */
function refuseNull(query: object): void {
  for (const [name, value] of Object.entries(query)) {
    if (value !== null || /^(?:cursor|page)/.test(name)) continue
    throw new HttpError(400, `${name} must not be null: leave it out to ask for all.`)
  }
}
