import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'

/** How long the provider's admin may take from the redirect to the consent. */
const lifeMs = 10 * 60 * 1000

/** The `state` of the authorization flow (RFC 6749, section 10.12): it names the directory, and only this service can make one. */
export interface StateSigner {
  sign(directoryId: string): string
  /** The directory's id; undefined for a state that was not made here or is older than ten minutes. */
  read(state: string): string | undefined
}

/** Signs with HMAC-SHA256 under a key of its own, derived from the encryption key. Form: `<id>.<end>.<nonce>.<signature>`. */
export function createStateSigner(encryptionKey: Buffer): StateSigner {
  const key = Buffer.from(hkdfSync('sha256', encryptionKey, '', 'external provider state', 32))
  const signature = (text: string): Buffer => createHmac('sha256', key).update(text).digest()
  return {
    sign(directoryId) {
      const end = (Date.now() + lifeMs).toString(36)
      const text = [directoryId, end, randomBytes(12).toString('base64url')].join('.')
      return `${text}.${signature(text).toString('base64url')}`
    },
    read(state) {
      const [, text = '', directoryId = '', end = '', signed = ''] =
        /^(([\w-]{1,64})\.([0-9a-z]{1,11})\.[\w-]{16})\.([\w-]{43})$/.exec(state) ?? []
      if (text === '') return undefined
      const presented = Buffer.from(signed, 'base64url')
      const genuine = signature(text)
      const isGenuine = presented.length === genuine.length && timingSafeEqual(presented, genuine)
      return isGenuine && Number.parseInt(end, 36) > Date.now() ? directoryId : undefined
    },
  }
}
