/** Identify: the project of an opaque bearer token, by asking the server that has made it (RFC 7662). */
import { createHash } from 'node:crypto'
import { definePlugin, Type } from 'sluicegate'

/** In ms; the gateway itself waits no longer than 2 s. */
const DEADLINE = 1500
const MOST_REMEMBERED = 10_000

export const introspection = definePlugin({
  name: 'introspection',
  kind: 'identify',
  // Tokens are checked here, so routes may require one, and `authenticated: verified` in a rule may rely on it.
  verifies: true,
  givesScopes: true,
  // What WWW-Authenticate tells a client without a token.
  challenge: () => 'Bearer',
  // The upstream does not get the token.
  strips: ({ strip }) => (strip ? 'authorization' : undefined),
  schema: Type.Object({
    url: Type.String({ pattern: '^https?://', maxLength: 1024, description: 'The introspection endpoint.' }),
    client: Type.String({
      minLength: 1,
      maxLength: 256,
      description: 'The id of the gateway at that server.',
    }),
    secret: Type.String({
      minLength: 1,
      maxLength: 256,
      // Never quoted in a message of `sluice check`.
      secret: true,
      description: 'Its secret.',
    }),
    project: Type.String({
      default: 'client_id',
      minLength: 1,
      description: 'The member of the answer with the id of a project of projects.yaml.',
    }),
    strip: Type.Boolean({ default: false, description: 'Whether the token is kept from the upstream.' }),
    rememberSeconds: Type.Integer({
      default: 30,
      minimum: 1,
      maximum: 3600,
      description: 'How long an answer is remembered. For so long a token may work that has been revoked.',
    }),
  }),

  // Once for each configuration, also by `sluice check`: it must not use the network.
  create(config, { projects }) {
    const byId = new Map(projects.map(({ id, plan, environment }) => [id, { id, plan, environment }]))
    /** By hash of the token. A promise while the server is asked, so that requests that come together ask once. */
    const remembered = new Map()

    async function ask(token, hash) {
      try {
        const answer = await introspect(config, token)
        const seconds = Math.min(config.rememberSeconds, (answer.exp ?? Infinity) - Date.now() / 1000)
        const entry = { said: projectOf(answer, token), until: Date.now() + seconds * 1000 }
        remembered.set(hash, entry)
        return entry.said
      } catch (error) {
        remembered.delete(hash)
        // The gateway logs it, and asks the next identifier; a route that requires a credential answers 503.
        throw error
      }
    }

    function projectOf({ active, scope, [config.project]: id }, token) {
      // Whoever sends many of these is slowed down. The reason is for the log, not for the client.
      if (active !== true) return { wrongCredential: token, reason: 'inactive' }
      const project = byId.get(id)
      if (project === undefined) return { wrongCredential: token, reason: 'no project' }
      return { ...project, scopes: typeof scope === 'string' ? scope.split(' ').filter(Boolean) : [] }
    }

    return {
      // For every request. Undefined leaves it to the next identifier; a promise makes only this request wait.
      identify(facts) {
        const [, token] = /^Bearer +([\w.~+/-]+=*)$/i.exec(facts.header('authorization') ?? '') ?? []
        if (token === undefined) return undefined
        const hash = createHash('sha256').update(token).digest('base64')
        const known = remembered.get(hash)
        if (known instanceof Promise) return known
        if (known !== undefined && Date.now() < known.until) return known.said
        if (remembered.size >= MOST_REMEMBERED) remembered.delete(remembered.keys().next().value)
        const asking = ask(token, hash)
        remembered.set(hash, asking)
        return asking
      },
    }
  },
})

async function introspect({ url, client, secret }, token) {
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      accept: 'application/json',
      authorization: `Basic ${Buffer.from(`${encodeURIComponent(client)}:${encodeURIComponent(secret)}`).toString('base64')}`,
    },
    body: new URLSearchParams({ token }),
    redirect: 'error',
    signal: AbortSignal.timeout(DEADLINE),
  })
  if (answer.status !== 200) throw new Error(`the introspection endpoint answers ${answer.status}`)
  return answer.json()
}
