/**
 * What an authority looks for at the domains (RFC 8555 section 8.3, RFC 8737). In the folder, because it may reach any
 * process of any gateway that shares it.
 */
import { createHash } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readSmall, writePrivately } from './folder.js'

export const CHALLENGES = ['http-01', 'tls-alpn-01'] as const
export type ChallengeKind = (typeof CHALLENGES)[number]

export class Challenges {
  readonly #folder: string

  /** @param folder that of the certificates */
  constructor(folder: string) {
    this.#folder = join(folder, 'challenges')
  }

  /**
   * @param name the token (http-01), or the domain (tls-alpn-01)
   * @param answer the key authorization, or certificate and key in PEM form
   */
  async publish(kind: ChallengeKind, name: string, answer: string): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    await writePrivately(this.#file(kind, name), answer)
  }

  async withdraw(kind: ChallengeKind, name: string): Promise<void> {
    await rm(this.#file(kind, name), { force: true })
  }

  /** Undefined if no such challenge is under way. */
  async answer(kind: ChallengeKind, name: string): Promise<string | undefined> {
    return readSmall(this.#file(kind, name))
  }

  #file(kind: ChallengeKind, name: string): string {
    // A digest is no way out of the folder, and never too long, whatever the name is.
    return join(this.#folder, `${kind}-${createHash('sha256').update(name).digest('hex')}`)
  }
}
