/** Identify: the project that a claim of the request's bearer token names. Only a token with a good signature counts. */
import { readFileSync } from 'node:fs'
import { definePlugin, Type } from 'sluicegate'
import { verifier } from './jwt.js'

const MOST_REMEMBERED = 1000

export const jwtClaim = definePlugin({
  name: 'jwt-claim',
  kind: 'identify',
  // A token's signature is checked here, so `authenticated: verified` in a rule may count on it.
  verifies: true,
  schema: Type.Object({
    algorithm: Type.Enum(['HS256', 'RS256'], {
      type: 'string',
      description: 'The only signature that is taken, whatever a token says of itself.',
    }),
    key: Type.Optional(
      Type.String({
        minLength: 32,
        // Never quoted in a message of `sluice check`.
        secret: true,
        description: 'HS256: the shared secret, 32 characters or more. RS256: the public key as PEM.',
      }),
    ),
    keyFile: Type.Optional(
      Type.String({ minLength: 1, description: 'File that holds the key, instead of "key".' }),
    ),
    claim: Type.String({
      default: 'project',
      minLength: 1,
      description: 'Claim with the id of a project of projects.yaml.',
    }),
    issuer: Type.Optional(Type.String({ description: 'What the claim "iss" must be.' })),
    audience: Type.Optional(Type.String({ description: 'What the claim "aud" must be or hold.' })),
  }),

  // Once for each configuration. What it throws is shown at this plugin's place in gateway.yaml.
  create(config, { projects }) {
    const verify = verifier({ ...config, key: keyOf(config) })
    const byId = new Map(projects.map(project => [project.id, project]))
    /** Tokens that were verified: a signature costs more than the rest of a request. */
    const remembered = new Map()

    return {
      // For every request: must answer at once. Undefined passes the question on to the next plugin of `identify`.
      identify(facts) {
        const token = /^Bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(facts.header('authorization') ?? '')?.[1]
        if (token === undefined) return undefined
        const now = Date.now() / 1000
        const claims = remembered.get(token) ?? verify(token, now)
        if (claims === undefined || claims.exp <= now) {
          remembered.delete(token)
          return undefined
        }
        if (!remembered.has(token)) {
          if (remembered.size >= MOST_REMEMBERED) remembered.delete(remembered.keys().next().value)
          remembered.set(token, claims)
        }
        return byId.get(claims[config.claim])
      },
    }
  },
})

function keyOf({ key, keyFile }) {
  if ((key === undefined) === (keyFile === undefined)) throw new Error('set either "key" or "keyFile"')
  return key ?? readFileSync(keyFile, 'utf8').trim()
}
