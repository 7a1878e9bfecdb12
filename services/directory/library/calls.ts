import { randomBytes } from 'node:crypto'
import type { Core } from '../core.js'
import { createServer, type Method, type Server } from '../routes/http.js'
import { addManagement } from '../routes/management.js'
import type { Refusal } from '../schemas/refusals.js'
import { hashKey } from '../secrets.js'

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

/**
 * Calls the routes of the management API in this process, without a listener: the same readers of input, the same sentences
 * and the same answers, so that the library can neither lack a rule nor have one of its own. The routes are made with the
 * first call, behind a key that nobody else knows.
 */
export function createCalls(core: Core): Call {
  const key = randomBytes(32).toString('base64url')
  let server: Server | undefined

  function routes(): Server {
    const { baseUrl = '', webhookTargets } = core.settings
    const made = createServer()
    const keys = { keyHashes: [hashKey(key)], wrongKey: async () => undefined }
    made.register(async scope => addManagement(scope, { ...core, ...keys, baseUrl, webhookTargets }))
    core.closers.push(() => made.close())
    return made
  }

  return async (method, path, { query = {}, body } = {}) => {
    // An empty part, or dots, would lead to another path.
    if (path.some(part => typeof part !== 'string' || /^\.{0,2}$/.test(part))) {
      return { data: null, error: { message: 'The id must be a text, as answers hold it.', code: 400 } }
    }
    server ??= routes()
    const asked = Object.entries(query).filter(([, value]) => value !== undefined)
    const { headers, payload } = await server.inject({
      method,
      url: `/${path.map(encodeURIComponent).join('/')}`,
      query: Object.fromEntries(asked.map(([name, value]) => [name, String(value)])),
      headers: { authorization: `Api-Key ${key}`, ...(body === undefined ? {} : json) },
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    })
    const next = /[?&]pageToken=([^&>]+)>; rel="next"/.exec(String(headers.link))?.[1]
    // The answer for members carries `data` alone: over HTTP the place of its next page is a header.
    return { error: null, ...(next ? { pageToken: decodeURIComponent(next) } : {}), ...JSON.parse(payload) }
  }
}

const json = { 'content-type': 'application/json' }
