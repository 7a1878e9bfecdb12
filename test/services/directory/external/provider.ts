/** A stub of the external provider: OAuth endpoints and a paged directory API like Google Workspace's. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

export interface ProviderUser {
  id: string
  primaryEmail: string
  name?: { givenName?: string; familyName?: string; fullName?: string }
  suspended?: boolean
  [more: string]: unknown
}

export interface ProviderGroup {
  id: string
  name: string
  email: string
  members: string[]
}

export interface Ask {
  readonly path: string
  readonly params: URLSearchParams
  readonly authorization: string
}

/** What a test may do with a request: respond itself (true) or leave it to the stub. */
export type Disturb = (ask: Ask, response: ServerResponse) => boolean | Promise<boolean>

export interface StandIn {
  readonly url: string
  /** Settings that make the service use it. */
  readonly env: Record<string, string>
  users: ProviderUser[]
  groups: ProviderGroup[]
  pageSize: number
  disturb: Disturb
  /** Access tokens that are currently valid. */
  readonly tokens: Set<string>
  /** Refresh tokens that are currently valid. */
  readonly refreshTokens: Set<string>
  readonly asks: Ask[]
  /** Bodies of the calls to the token endpoint. */
  readonly grants: URLSearchParams[]
  /** Lifetime of new access tokens in seconds. */
  lifeSeconds: number
  /** Whether a refresh token is valid only once. */
  rotates: boolean
}

export const person = (number: number, more: object = {}): ProviderUser => ({
  id: `p${number}`,
  primaryEmail: `person${number}@acme.example`,
  name: { givenName: 'Person', familyName: String(number), fullName: `Person ${number}` },
  ...more,
})

export const people = (count: number): ProviderUser[] =>
  Array.from({ length: count }, (_, n) => person(n + 1))

/** Three groups, with a group within a group and a member from elsewhere. */
export const teams = () => [
  { id: 'g1', name: 'Sales', email: 'sales@acme.example', members: ['p1', 'p2', 'p3', 'p9', 'g2'] },
  { id: 'g2', name: 'Support', email: 'support@acme.example', members: ['p3', 'p4'] },
  { id: 'g3', name: 'Empty', email: 'empty@acme.example', members: [] },
]

export async function startProvider(t: Test): Promise<StandIn> {
  let made = 0
  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const countLocally: StandIn = {
    url,
    env: {
      EXTERNAL_CLIENT_ID: 'client',
      EXTERNAL_CLIENT_SECRET: 'client-secret-canary',
      EXTERNAL_AUTHORIZE_URL: `${url}/authorize`,
      EXTERNAL_TOKEN_URL: `${url}/token`,
      EXTERNAL_API_URL: `${url}/api`,
    },
    users: [],
    groups: [],
    pageSize: 2,
    disturb: () => false,
    tokens: new Set(),
    refreshTokens: new Set(),
    asks: [],
    grants: [],
    lifeSeconds: 3600,
    rotates: false,
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams: params } = new URL(request.url ?? '/', url)
    const ask = { path: pathname, params, authorization: request.headers.authorization ?? '' }
    let text = ''
    for await (const chunk of request) text += chunk
    if (pathname === '/token') countLocally.grants.push(new URLSearchParams(text))
    else countLocally.asks.push(ask)
    if (await countLocally.disturb(ask, response)) return
    if (pathname === '/token') return token(new URLSearchParams(text), response)
    if (!countLocally.tokens.has(ask.authorization.replace('Bearer ', ''))) return json(response, 401, {})
    const [, , list, groupId] = pathname.split('/')
    const group = countLocally.groups.find(({ id }) => id === groupId)
    if (list === 'users') return page(response, params, 'users', countLocally.users)
    if (groupId === undefined) {
      const groups = countLocally.groups.map(({ members: _, ...shown }) => ({ kind: 'group', ...shown }))
      return page(response, params, 'groups', groups)
    }
    if (!group) return json(response, 404, {})
    const members = group.members.map(id => {
      const user = countLocally.users.find(each => each.id === id)
      const email = user?.primaryEmail ?? `${id}@elsewhere.example`
      const status = user?.suspended ? 'SUSPENDED' : 'ACTIVE'
      return {
        id,
        email,
        role: 'MEMBER',
        ...(id.startsWith('g') ? { type: 'GROUP' } : { type: 'USER', status }),
      }
    })
    return page(response, params, 'members', members)
  }

  function token(form: URLSearchParams, response: ServerResponse): void {
    const { client_id, client_secret, grant_type, code, refresh_token } = Object.fromEntries(form)
    const known = client_id === 'client' && client_secret === 'client-secret-canary'
    const right =
      grant_type === 'authorization_code'
        ? code === 'good-code'
        : countLocally.refreshTokens.has(refresh_token ?? '')
    if (!known || !right) {
      json(response, 400, { error: 'invalid_grant', error_description: 'Bad Request' })
      return
    }
    const access_token = `access-canary-${++made}`
    countLocally.tokens.add(access_token)
    const isNew = grant_type === 'authorization_code' || countLocally.rotates
    const fresh = isNew ? { refresh_token: `refresh-canary-${made}` } : {}
    if (countLocally.rotates) countLocally.refreshTokens.delete(refresh_token ?? '')
    if (fresh.refresh_token) countLocally.refreshTokens.add(fresh.refresh_token)
    const rest = { expires_in: countLocally.lifeSeconds, scope: 'a b', token_type: 'Bearer' }
    json(response, 200, { access_token, ...fresh, ...rest })
  }

  function page(response: ServerResponse, params: URLSearchParams, name: string, items: object[]): void {
    const start = Number(params.get('pageToken') ?? 0)
    const end = start + countLocally.pageSize
    const found = items.slice(start, end)
    json(response, 200, {
      kind: name,
      // Like the real provider, leaves out an empty list.
      ...(found.length > 0 ? { [name]: found } : {}),
      ...(end < items.length ? { nextPageToken: String(end) } : {}),
    })
  }
  return countLocally
}

export function json(response: ServerResponse, status: number, body: object, headers: object = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
