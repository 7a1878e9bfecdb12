/** Plugin: the project whose `apiKeyHashes` list the SHA-256 of the key in a header. */
import { createHash } from 'node:crypto'
import { Type } from 'typebox'
import { definePlugin } from '../plugin.js'

export const apiKey = definePlugin({
  name: 'api-key',
  kind: 'identify',
  verifies: true,
  schema: Type.Object({
    header: Type.String({
      default: 'x-api-key',
      pattern: '^[A-Za-z0-9-]{1,64}$',
      description: "The header that holds the key; with `authorization` the scheme's name is dropped.",
    }),
  }),
  create: (config, { projects }) => {
    const byHash = new Map(projects.flatMap(project => project.apiKeyHashes.map(hash => [hash, project])))
    const name = config.header.toLowerCase()
    return {
      identify: facts => {
        const value = facts.header(name)
        if (value === undefined) return undefined
        const key = name === 'authorization' ? value.slice(value.indexOf(' ') + 1).trim() : value
        return byHash.get(createHash('sha256').update(key).digest('hex'))
      },
    }
  },
})
