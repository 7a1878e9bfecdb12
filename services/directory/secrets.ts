import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { hashKey } from '../keys.js'
import { storedKey } from '../storage/data-folder.js'
import type { OldSecret } from './model.js'
import type { Settings } from './settings.js'

/** A new random secret: 32 bytes as base64url. */
export const newSecret = (): string => randomBytes(32).toString('base64url')

/** The hash under which the token of a link is stored. */
export const hashOfToken = (token: string): string => hashKey(token).toString('base64url')

/** Seals and opens secrets at rest. */
export interface SecretBox {
  seal(secret: string, owner: string, field: string): string
  /** Throws when the text was sealed with another key, for another owner or field, or was altered. */
  open(sealed: string, owner: string, field: string): string
  /** The same secret under the first key; returned unchanged if it already is. Throws as `open` does. */
  reseal(sealed: string, owner: string, field: string): string
}

interface Key {
  readonly id: string
  readonly bytes: Buffer
}

/**
 * AES-256-GCM with a random 12-byte nonce; the owner's id and the field's name are bound as additional data, so that a
 * sealed text copied to another row does not open. The first key seals, all keys open. Text form, with its parts in
 * base64url: `v2.<key id>.<nonce>.<tag>.<ciphertext>`.
 */
export function createSecretBox(bytes: readonly [Buffer, ...Buffer[]]): SecretBox {
  const keys = bytes.map(each => ({ id: keyId(each), bytes: each }))
  const first = keys[0] as Key
  const seal: SecretBox['seal'] = (secret, owner, field) => {
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', first.bytes, nonce).setAAD(bound(owner, field))
    const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
    const parts = [nonce, cipher.getAuthTag(), text].map(part => part.toString('base64url'))
    return ['v2', first.id, ...parts].join('.')
  }
  const open: SecretBox['open'] = (sealed, owner, field) => {
    const [version, id, ...parts] = sealed.split('.')
    if (version !== 'v2') throw new Error('not an encrypted secret')
    const key = keys.find(each => each.id === id)
    if (!key) throw new Error('encrypted with a key that is not in ENCRYPTION_KEY')
    return openWith(key, parts, bound(owner, field))
  }
  return {
    seal,
    open,
    reseal: (sealed, owner, field) =>
      sealed.startsWith(`v2.${first.id}.`) ? sealed : seal(open(sealed, owner, field), owner, field),
  }
}

/** Identifies the key in what it sealed, without revealing anything about it. */
const keyId = (key: Buffer): string =>
  createHmac('sha256', key).update('sluice key id').digest('base64url').slice(0, 8)

const bound = (owner: string, field: string): Buffer => Buffer.from(JSON.stringify([owner, field]))

function openWith(key: Key, parts: readonly string[], data: Buffer): string {
  const [nonce, tag, text] = parts.map(part => Buffer.from(part, 'base64url'))
  if (!nonce || tag?.length !== 16 || !text) throw new Error('not an encrypted secret')
  const decipher = createDecipheriv('aes-256-gcm', key.bytes, nonce).setAAD(data).setAuthTag(tag)
  return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8')
}

/** The replaced secrets that are still valid. */
export const goodOnes = (secrets: readonly OldSecret[] = []): OldSecret[] =>
  secrets.filter(({ until }) => Date.parse(until) > Date.now())

/** When the last valid old secret expires, as the API shows it; empty when none is valid any more. */
export function overlapOf(secrets: readonly OldSecret[] = []): { old_secret_valid_until?: string } {
  const ends = goodOnes(secrets).map(({ until }) => until)
  const last = ends.sort().at(-1)
  return last === undefined ? {} : { old_secret_valid_until: last }
}

const remedy = 'Restore it from a backup'

/**
 * The hash of the management key and the file that holds it; `made` is the key itself if this call made it (it is
 * never shown again).
 */
export function managementKey(folder: string): { hash: Buffer; made: string | undefined; file: string } {
  const key = `sk_${randomBytes(32).toString('base64url')}`
  const file = join(folder, 'api-key.sha256')
  const { text, made } = storedKey(file, { remedy, fresh: hashKey(key) })
  return { hash: Buffer.from(text, 'base64'), made: made ? key : undefined, file }
}

/** The keys of the settings, else that of the data folder, which the first start makes. */
export function encryptionKeys({
  encryptionKeys: [first, ...others],
  dataDir,
}: Pick<Settings, 'encryptionKeys' | 'dataDir'>): [Buffer, ...Buffer[]] {
  if (first) return [first, ...others]
  return [Buffer.from(storedKey(join(dataDir, 'encryption.key'), { remedy }).text, 'base64')]
}
