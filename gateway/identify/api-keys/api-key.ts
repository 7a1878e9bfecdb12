/** Plugin: the project of the key in a header: one of `sluice keys`, or one whose SHA-256 projects.yaml lists. */
import { Type } from 'typebox'
import { definePlugin, type Project, type WrongCredential } from '../../plugin.js'
import { namedProjects } from '../named-project.js'
import type { InUse } from '../shared.js'
import { type ApiKey, hashOf, stateOf } from './key-file.js'
import type { KeyStore } from './key-store.js'
import { checkKeys, useKeys } from './shared-keys.js'

/** Longer ones are no keys of anybody. */
const LONGEST = 4096

export const apiKey = definePlugin({
  name: 'api-key',
  kind: 'identify',
  verifies: true,
  listedOnly: () => true,
  givesScopes: true,
  challenge: ({ scheme = 'Api-Key' }) => scheme,
  strips: ({ header, scheme, strip }) => (strip ? { header: header.toLowerCase(), scheme } : undefined),
  schema: Type.Object({
    header: Type.String({
      default: 'x-api-key',
      pattern: '^[A-Za-z0-9-]{1,64}$',
      description: "The header that holds the key; with `authorization` the scheme's name is dropped.",
    }),
    scheme: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z][A-Za-z0-9-]{0,31}$',
        description:
          'The authentication scheme before the key, such as Api-Key. Without it, any is accepted.',
      }),
    ),
    strip: Type.Boolean({
      default: false,
      description: 'Whether the header is removed before the request goes to its upstream.',
    }),
  }),
  create({ header, scheme }, tools) {
    // A file that cannot be used is a fault of the configuration; later, the keys known stay in force.
    if (tools.apiKeys !== undefined) checkKeys(tools.apiKeys)
    const listed = new Map(
      tools.projects.flatMap(({ id, plan, environment, apiKeyHashes }) =>
        apiKeyHashes.map(hash => [hash, { id, plan, environment }]),
      ),
    )
    const named = namedProjects('known', tools)
    const name = header.toLowerCase()
    const before = scheme === undefined ? undefined : `${scheme.toLowerCase()} `
    let keys: InUse<KeyStore> | undefined

    function keyIn(value: string): string | undefined {
      if (before !== undefined) {
        return value.slice(0, before.length).toLowerCase() === before
          ? value.slice(before.length).trim()
          : undefined
      }
      return name === 'authorization' ? value.slice(value.indexOf(' ') + 1).trim() : value
    }

    const owners = new WeakMap<ApiKey, Project | string>()
    /** The project of a key, or why there is none. */
    function ownerOf(made: ApiKey): Project | string {
      const known = owners.get(made)
      if (known !== undefined) return known
      const found = named(made.project)
      const owner = typeof found === 'string' ? found : { ...found, scopes: made.scopes }
      owners.set(made, owner)
      return owner
    }

    function projectOf(made: ApiKey, key: string, explains: boolean): Project | WrongCredential {
      const now = Date.now()
      const state = stateOf(made, now)
      if (state !== 'active') return { wrongCredential: key, reason: state }
      const owner = ownerOf(made)
      if (typeof owner === 'string') return { wrongCredential: key, reason: owner }
      if (!explains) keys?.value.used.set(made.id, now)
      return owner
    }

    return {
      identify(facts, explains = false) {
        const value = facts.header(name)
        const key = value === undefined ? undefined : keyIn(value)
        if (key === undefined) return undefined
        if (key.length > LONGEST) return { wrongCredential: key.slice(0, LONGEST), reason: 'too long' }
        // They are read when the gateway starts: before, whether this one is among them is unknown.
        if (keys === undefined && tools.apiKeys !== undefined) throw new Error('the keys have not been read')
        const hash = hashOf(key)
        const made = keys?.value.find(hash)
        if (made !== undefined) return projectOf(made, key, explains)
        return listed.get(hash) ?? { wrongCredential: key, reason: 'unknown key' }
      },
      start() {
        if (tools.apiKeys !== undefined) keys = useKeys(tools.apiKeys, tools.log)
      },
      async close() {
        keys?.release()
        keys = undefined
      },
    }
  },
})
