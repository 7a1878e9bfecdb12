import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { hashOfToken, newSecret } from '../secrets.js'
import type { ConsentLink, LinkStore } from '../store/contract.js'
import type { ProviderConnection } from './connection.js'
import { ConnectionFlowError } from './error.js'

export interface ConsentParts {
  readonly store: LinkStore
  readonly connection: ProviderConnection
  readonly states: StateSigner
}

/** Each consent has its own cookie, so that two tabs do not interfere. */
const cookieNameOf = (browser: string): string => `sluice_consent_${browser.slice(0, 12)}`

export type Consent = ReturnType<typeof createConsent>

/**
 * A consent over HTTP. It starts with a one-time link, ends in the browser that started it, and uses the link up:
 * knowing a directory's id is not enough to connect it or to replace its tokens. All methods throw ConnectionFlowError.
 */
export function createConsent({ store, connection, states }: ConsentParts) {
  async function held(hash: string): Promise<ConsentLink> {
    const link = await store.link(hash, Date.now())
    if (link) return link
    throw usedUp()
  }

  return {
    /** Makes a new link to the directory's consent. Returns its token, which is not stored, and its end (epoch ms). */
    async link(directoryId: string, lifeMs: number) {
      await connection.requirePossible(directoryId)
      const token = newSecret()
      const now = Date.now()
      await store.addLink({ hash: hashOfToken(token), directoryId, until: now + lifeMs }, now)
      return { token, until: now + lifeMs }
    },

    /** Where to redirect the browser that opened the link, and the cookie it must send back. */
    async begin(token: string, redirectUrl: string) {
      const { hash: link, directoryId } = await held(hashOfToken(token))
      const value = newSecret()
      const browser = hashOfToken(value)
      const state = states.sign({ directoryId, link, browser })
      const authorizationUrl = await connection.authorizationUrl(directoryId, redirectUrl, state)
      return { authorizationUrl, cookie: { name: cookieNameOf(browser), value } }
    },

    /** Checks the browser that returns from the provider; `trusted` callers need no cookie. */
    async resume(state: string, cookies: ReadonlyMap<string, string>, trusted: boolean) {
      const bound = states.read(state)
      if (!bound) {
        throw new ConnectionFlowError(
          400,
          'The state is missing, unknown or older than ten minutes: open the link again.',
        )
      }
      const { directoryId, link, browser } = bound
      const cookieName = cookieNameOf(browser)
      if (!trusted && hashOfToken(cookies.get(cookieName) ?? '') !== browser) {
        throw new ConnectionFlowError(
          403,
          'This is not the browser that started the consent, or it does not accept cookies: open the link again here.',
        )
      }
      await held(link)
      return {
        cookieName,
        /** Exchanges the provider's code, uses the link up and stores the tokens. */
        async finish(code: string, redirectUrl: string): Promise<void> {
          const tokens = await connection.exchange(directoryId, code, redirectUrl)
          if (!(await store.takeLink(link, Date.now()))) throw usedUp()
          const { access_token: access, refresh_token: refresh, expiry_date: expires } = tokens
          await connection.store(directoryId, { access, refresh, expires })
          await store.dropLinks(directoryId)
        },
      }
    },
  }
}

const usedUp = (): ConnectionFlowError =>
  new ConnectionFlowError(403, 'This link is unknown, already used or expired: ask for a new one.')

/** How long the provider's admin may take from the redirect to giving consent. */
export const stateLifeMs = 10 * 60 * 1000

/** What a `state` of the authorization flow (RFC 6749, section 10.12) is bound to. */
interface Bound {
  readonly directoryId: string
  /** Hash of the one-time link that began the consent. */
  readonly link: string
  /** Hash of the value in the browser's cookie. */
  readonly browser: string
}

/** Signs and verifies states; only this service can make one. */
interface StateSigner {
  sign(bound: Bound): string
  /** Undefined for a state that was not signed here or is older than ten minutes. */
  read(state: string): Bound | undefined
}

/**
 * Signs with HMAC-SHA256 under a key of its own, derived from the encryption key. Form:
 * `<id>.<link>.<browser>.<end>.<signature>`.
 */
export function createStateSigner(encryptionKey: Buffer): StateSigner {
  const key = Buffer.from(hkdfSync('sha256', encryptionKey, '', 'external provider state', 32))
  const signature = (text: string): Buffer => createHmac('sha256', key).update(text).digest()
  return {
    sign({ directoryId, link, browser }) {
      const end = (Date.now() + stateLifeMs).toString(36)
      const text = [directoryId, link, browser, end].join('.')
      return `${text}.${signature(text).toString('base64url')}`
    },
    read(state) {
      const [, text = '', directoryId = '', link = '', browser = '', end = '', signed = ''] =
        /^(([\w-]{1,64})\.([\w-]{43})\.([\w-]{43})\.([0-9a-z]{1,11}))\.([\w-]{43})$/.exec(state) ?? []
      if (text === '') return undefined
      const presented = Buffer.from(signed, 'base64url')
      const genuine = signature(text)
      const isGenuine = presented.length === genuine.length && timingSafeEqual(presented, genuine)
      if (!isGenuine || Number.parseInt(end, 36) <= Date.now()) return undefined
      return { directoryId, link, browser }
    },
  }
}
