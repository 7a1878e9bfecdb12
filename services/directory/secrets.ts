import { createCipheriv, createDecipheriv, createHash, randomBytes, timingSafeEqual } from 'node:crypto'

/** A new random secret: 32 bytes as base64url. */
export const newSecret = (): string => randomBytes(32).toString('base64url')

/** SHA-256 of a key. Keys are random, so a slow password hash would add nothing. */
export const hashKey = (key: string): Buffer => createHash('sha256').update(key).digest()

/** Compares a presented key with a hash in constant time. */
export const fits = (presented: string, hash: Buffer): boolean => timingSafeEqual(hashKey(presented), hash)

/** Seals and opens secrets at rest. */
export interface SecretBox {
  seal(secret: string, owner: string, field: string): string
  /** Throws when the text was sealed with another key, for another owner or field, or was altered. */
  open(sealed: string, owner: string, field: string): string
}

/**
 * AES-256-GCM with a random 12-byte nonce; the owner's id and the field's name are bound as additional data, so a
 * sealed text copied to another row does not open. Text form: `v1.<nonce>.<tag>.<ciphertext>` in base64url.
 */
export function createSecretBox(key: Buffer): SecretBox {
  const bound = (owner: string, field: string): Buffer => Buffer.from(JSON.stringify([owner, field]))
  return {
    seal(secret, owner, field) {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(bound(owner, field))
      const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
      return ['v1', ...[nonce, cipher.getAuthTag(), text].map(part => part.toString('base64url'))].join('.')
    },
    open(sealed, owner, field) {
      const [version, ...parts] = sealed.split('.')
      const [nonce, tag, text] = parts.map(part => Buffer.from(part, 'base64url'))
      if (version !== 'v1' || !nonce || tag?.length !== 16 || !text) throw new Error('not a sealed secret')
      const decipher = createDecipheriv('aes-256-gcm', key, nonce).setAAD(bound(owner, field)).setAuthTag(tag)
      return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8')
    },
  }
}
