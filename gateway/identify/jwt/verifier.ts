/** Verifies tokens, each once: what they say is remembered until they expire, or until a key is no longer trusted. */
import type { Project } from '../../plugin.js'
import { type Claims, type KeyOf, type TokenSettings, verify, WrongToken } from './token.js'
import { VerifiedTokens } from './verified-tokens.js'

/** Each holds its token; a flood of new ones must not take the memory of the process. */
const MOST_RUNNING = 1000

export class Verifier {
  readonly #settings: TokenSettings
  readonly #keyOf: KeyOf
  readonly #projectOf: (claims: Claims) => Project | string
  readonly #verified = new VerifiedTokens()
  /** Tokens that are being verified: many requests may bring the same new one at once. */
  readonly #running = new Map<string, Promise<Project>>()
  #forgotten = 0

  /** @param projectOf the project of these claims, or in a word or two why there is none */
  constructor(settings: TokenSettings, keyOf: KeyOf, projectOf: (claims: Claims) => Project | string) {
    this.#settings = settings
    this.#keyOf = keyOf
    this.#projectOf = projectOf
  }

  /** The project of a token; a promise only for one that is not remembered. Rejects as `verify` does. */
  projectOf(token: string): Project | Promise<Project> {
    const known = this.#verified.get(token, Date.now() / 1000)
    if (known !== undefined) return known
    let running = this.#running.get(token)
    if (running === undefined) {
      if (this.#running.size >= MOST_RUNNING) return Promise.reject(new Error('too many tokens at once'))
      const own = ownCopy(token)
      running = this.#verify(own).finally(() => this.#running.delete(own))
      this.#running.set(own, running)
    }
    return running
  }

  /** A key is no longer trusted: nothing that was verified is remembered. */
  forget(): void {
    this.#forgotten += 1
    this.#running.clear()
    this.#verified.clear()
  }

  async #verify(token: string): Promise<Project> {
    const forgotten = this.#forgotten
    const claims = await verify(token, this.#keyOf, this.#settings)
    const project = this.#projectOf(claims)
    if (typeof project === 'string') throw new WrongToken(project)
    const until = (claims.exp as number) + this.#settings.clockTolerance / 1000
    if (forgotten === this.#forgotten) this.#verified.set(token, project, until)
    return project
  }
}

/** The characters of a token alone: a part of a string keeps the whole of it, here the head of a request. */
function ownCopy(token: string): string {
  return Buffer.from(token, 'utf8').toString('utf8')
}
