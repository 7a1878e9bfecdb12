import { isJsonObject } from '../../json.js'
import type { JsonObject } from '../model.js'
import type { CallProvider } from './call.js'
import type { AccessToken } from './connection.js'
import { Forbidden, ProviderError } from './error.js'
import type { Bounds } from './settings.js'

/** A provider's directory API, one page at a time. All methods throw ProviderError. */
export interface ProviderReader {
  users(): AsyncGenerator<JsonObject[]>
  groups(): AsyncGenerator<JsonObject[]>
  members(groupId: string): AsyncGenerator<JsonObject[]>
}

export interface ProviderParts {
  readonly call: CallProvider
  readonly bounds: Bounds
  readonly token: AccessToken
  readonly apiUrl: string
  readonly domain: string
  readonly signal: AbortSignal
}

const pageSize = '200'

/** The API of Google Workspace's Admin SDK: `users`, `groups` and `groups/{id}/members`, paged by `nextPageToken`. */
export function createProvider({
  call,
  bounds,
  token,
  apiUrl,
  domain,
  signal,
}: ProviderParts): ProviderReader {
  async function get(url: URL): Promise<JsonObject> {
    const ask = (bearer: string) =>
      call({ method: 'GET', url, headers: { authorization: `Bearer ${bearer}` } }, signal)
    const first = await ask(await token.current())
    const { status, body } = first.status === 401 ? await ask(await token.renew()) : first
    if (status === 200) return body
    const Refused = status === 403 ? Forbidden : ProviderError
    throw new Refused(`GET ${url.pathname}: the provider answered ${status}`, status)
  }

  async function* pages(path: string, name: string, params: Record<string, string>) {
    const seen = new Set<string>()
    for (let pageToken: string | undefined; ; ) {
      const url = new URL(`${apiUrl}/${path}`)
      const asked = { ...params, maxResults: pageSize, ...(pageToken === undefined ? {} : { pageToken }) }
      for (const [key, value] of Object.entries(asked)) url.searchParams.set(key, value)
      const { [name]: items = [], nextPageToken: next } = await get(url)
      if (!Array.isArray(items) || !items.every(isJsonObject)) {
        throw new ProviderError(`GET ${url.pathname}: "${name}" is not a list of objects`)
      }
      yield items
      if (next === undefined || next === null || next === '') return
      if (typeof next !== 'string')
        throw new ProviderError(`GET ${url.pathname}: nextPageToken is not a string`)
      if (seen.has(next)) throw new ProviderError(`GET ${url.pathname}: the same page was returned again`)
      if (seen.size + 1 >= bounds.pages) {
        throw new ProviderError(`GET ${url.pathname}: more than ${bounds.pages} pages`)
      }
      seen.add(next)
      pageToken = next
    }
  }

  const whose: Record<string, string> = domain === '' ? { customer: 'my_customer' } : { domain }
  return {
    users: () => pages('users', 'users', whose),
    groups: () => pages('groups', 'groups', whose),
    members: groupId => pages(`groups/${encodeURIComponent(groupId)}/members`, 'members', {}),
  }
}
