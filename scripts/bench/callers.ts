/** Ten thousand projects, each known by its host, by an API key or by a token. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newKey as newApiKey } from '../../gateway/identify/api-keys/key-file.js'
import { AUDIENCE, ISSUER, newKey, token } from '../../test/gateway/identify/jwt/issuer.js'

export type CallerKind = 'host' | 'api-key' | 'jwt'

export interface Callers {
  /** Settings of gateway.yaml. */
  readonly settings: Readonly<Record<string, unknown>>
  /** The text of projects.yaml. */
  readonly projects: string
  /** A file with a header for each of them, `name: value` a line. */
  readonly headers: string
}

/** Writes the credentials of `count` projects into a folder. */
export async function makeCallers(kind: CallerKind, count: number, folder: string): Promise<Callers> {
  const ids = Array.from({ length: count }, (_, i) => `p${i}`)
  // Short, because a file may have 1 MiB.
  const line = (id: string) => `- { id: ${id}, plan: growth, environment: production, hosts: [${id}.test] }\n`
  const projects = `version: 1\nprojects:\n${ids.map(line).join('')}`
  const { settings, headers } = await MAKE[kind](ids, folder)
  const file = join(folder, 'headers.txt')
  writeFileSync(file, headers.map(header => `${header}\n`).join(''))
  return { settings, projects, headers: file }
}

interface Made {
  readonly settings: Readonly<Record<string, unknown>>
  readonly headers: readonly string[]
}

const MAKE: Readonly<Record<CallerKind, (ids: readonly string[], folder: string) => Promise<Made>>> = {
  host: async ids => ({ settings: {}, headers: ids.map(id => `Host: ${id}.test`) }),

  async 'api-key'(ids, folder) {
    const made = ids.map(project => newApiKey({ project, name: 'bench', scopes: [] }, new Date()))
    const file = join(folder, 'api-keys.json')
    writeFileSync(file, JSON.stringify({ version: 1, keys: made.map(({ entry }) => entry) }))
    return {
      settings: { apiKeys: file, identify: [{ plugin: 'api-key' }] },
      headers: made.map(({ key }) => `x-api-key: ${key}`),
    }
  },

  async jwt(ids, folder) {
    const key = await newKey('bench')
    const file = join(folder, 'jwks.json')
    writeFileSync(file, JSON.stringify({ keys: [key.jwk] }))
    const tokens = await Promise.all(ids.map(azp => token(key, { claims: { azp }, expires: '1h' })))
    const identifier = { plugin: 'jwt', issuer: ISSUER, audience: AUDIENCE, jwks: file, project: 'azp' }
    return {
      settings: { identify: [identifier] },
      headers: tokens.map(text => `authorization: Bearer ${text}`),
    }
  },
}
