import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'

/** How long the provider's admin may take from the redirect to giving consent. */
export const stateLifeMs = 10 * 60 * 1000

/** What a `state` of the authorization flow (RFC 6749, section 10.12) is bound to. */
export interface Bound {
  readonly directoryId: string
  /** Hash of the one-time link that began the consent. */
  readonly link: string
  /** Hash of the value in the browser's cookie. */
  readonly browser: string
}

/** Signs and verifies states; only this service can make one. */
export interface StateSigner {
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
