import type { Directory, External } from '../model.js'
import type { SecretBox } from '../secrets.js'
import { DirectoryStoreUnavailable, type Store } from '../store/contract.js'
import { ConnectionFlowError, ProviderError } from './error.js'
import { isToken, type OAuth, type TokenSet } from './oauth.js'

/** Tokens to store; `expires` (epoch ms) if it is known. */
export interface GivenTokens {
  readonly access: unknown
  readonly refresh: unknown
  readonly expires?: number
}

/** An access token that is renewed when it expires; a new one is stored before it is used. */
export interface AccessToken {
  current(): Promise<string>
  /** For when the provider has refused the current one. */
  renew(): Promise<string>
}

export interface ConnectionParts {
  readonly store: Store
  readonly box: SecretBox
  readonly oauth: OAuth
  readonly sign: (directoryId: string) => string
  readonly closing: AbortSignal
}

/** A stored token that expires this soon is renewed before it is used. */
const marginMs = 60_000
const maxAttempts = 5

export type ProviderConnection = ReturnType<typeof createConnection>

/**
 * The three steps that connect a directory to its provider (the spec's connection flow). They throw ConnectionFlowError.
 */
export function createConnection({ store, box, oauth, sign, closing }: ConnectionParts) {
  async function pulled(directoryId: string): Promise<Directory & { external: External }> {
    const directory = await store.directory(directoryId)
    if (!directory) throw new ConnectionFlowError(404, 'There is no directory with this id.')
    const { external } = directory
    if (external) return { ...directory, external }
    throw new ConnectionFlowError(
      400,
      `A directory of type ${directory.type} is not pulled; its type must be external.`,
    )
  }

  /** Stores tokens, and retries when the directory is changed at the same time. */
  async function save(directoryId: string, tokens: GivenTokens): Promise<Directory> {
    const { access, refresh, expires } = tokens
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const before = await pulled(directoryId)
      const known = before.external.tokens && open(before, 'refresh')
      // If the provider returns no new refresh token, the previous one stays valid.
      const lasting = refresh === '' || refresh === undefined ? known : refresh
      if (!isToken(access))
        throw new ConnectionFlowError(400, 'accessToken is required: the text of an access token.')
      if (!isToken(lasting))
        throw new ConnectionFlowError(400, 'refreshToken is required: the text of a refresh token.')
      const sealed = {
        access: box.seal(access, directoryId, field('access')),
        refresh: box.seal(lasting, directoryId, field('refresh')),
        ...(expires === undefined ? {} : { expires }),
      }
      const after = { ...before, external: { ...before.external, tokens: sealed } }
      if (await store.replaceDirectory(before, after)) return after
    }
    throw new DirectoryStoreUnavailable('The directory is changing too fast; try again.')
  }

  const open = ({ id, external }: Directory, which: 'access' | 'refresh'): string =>
    openTokens(box, id, external)[which]

  return {
    /** Without `state`, makes one that only the library's caller can use: our own callback does not accept it. */
    async authorizationUrl(directoryId: string, redirectUrl: string, state = sign(directoryId)) {
      await pulled(directoryId)
      return oauth.authorizationUrl(state, redirectUrl)
    },

    /** Throws when the directory could not be connected anyway. */
    async requirePossible(directoryId: string): Promise<void> {
      await pulled(directoryId)
      oauth.requireClient()
    },

    async exchange(directoryId: string, code: string, redirectUrl: string): Promise<TokenSet> {
      await pulled(directoryId)
      try {
        return await oauth.exchange(code, redirectUrl, closing)
      } catch (error) {
        if (!(error instanceof ProviderError)) throw error
        const refused = error.status === 400 || error.status === 401
        throw new ConnectionFlowError(refused ? 400 : 502, `${error.message}.`)
      }
    },

    async store(directoryId: string, tokens: GivenTokens): Promise<Directory> {
      const directory = await save(directoryId, tokens)
      await store.enlistPull(directoryId)
      return directory
    },

    /** The directory's access token for a pull. Throws ProviderError. */
    accessToken(directory: Directory, signal: AbortSignal): AccessToken {
      let token: { text: string; expires: number } | undefined

      async function renew(): Promise<string> {
        const { access_token, refresh_token, expiry_date } = await refreshed()
        await save(directory.id, { access: access_token, refresh: refresh_token, expires: expiry_date })
        token = { text: access_token, expires: expiry_date }
        return access_token
      }
      async function refreshed(): Promise<TokenSet> {
        try {
          return await oauth.refresh(open(await pulled(directory.id), 'refresh'), signal)
        } catch (error) {
          if (!(error instanceof ProviderError && error.status === 400)) throw error
          throw new ProviderError(`${error.message}: connect the directory again`, error.status)
        }
      }
      return {
        renew,
        async current() {
          const expires = directory.external?.tokens?.expires ?? Number.POSITIVE_INFINITY
          token ??= { text: open(directory, 'access'), expires: expires - marginMs }
          return token.expires > Date.now() ? token.text : renew()
        },
      }
    },
  }
}

const field = (which: 'access' | 'refresh'): string => `external ${which} token`

/** A directory's provider settings with the tokens re-encrypted under the first key. */
export function resealTokens(box: SecretBox, directoryId: string, external: External): External {
  const { tokens } = external
  if (!tokens) return external
  const reseal = (which: 'access' | 'refresh'): string => box.reseal(tokens[which], directoryId, field(which))
  return { ...external, tokens: { ...tokens, access: reseal('access'), refresh: reseal('refresh') } }
}

/** A directory's tokens in clear; empty before it is connected. */
export function openTokens(
  box: SecretBox,
  directoryId: string,
  external: External | undefined,
): { access: string; refresh: string } {
  const open = (which: 'access' | 'refresh'): string =>
    external?.tokens ? box.open(external.tokens[which], directoryId, field(which)) : ''
  return { access: open('access'), refresh: open('refresh') }
}
