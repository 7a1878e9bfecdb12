/**
 * Counts distinct texts in bounded memory: exactly up to a limit, beyond it estimated from the smallest hashes seen (k
 * minimum values, Bar-Yossef et al. 2002), with a standard error of about 1/√k.
 */
import { createHash } from 'node:crypto'

const MOST_EXACT = 4096
const SPACE = 2 ** 48

export class Distinct {
  readonly #hashes = new Set<number>()
  /** Hashes from this on are left out, once there are too many to keep. */
  #limit = SPACE

  add(text: string): void {
    const hash = hashOf(text)
    if (hash >= this.#limit) return
    this.#hashes.add(hash)
    if (this.#hashes.size < 2 * MOST_EXACT) return
    const smallest = [...this.#hashes].sort((a, b) => a - b).slice(0, MOST_EXACT)
    this.#hashes.clear()
    for (const one of smallest) this.#hashes.add(one)
    this.#limit = smallest[MOST_EXACT - 1] as number
  }

  get isExact(): boolean {
    return this.#limit === SPACE
  }

  get count(): number {
    if (this.isExact) return this.#hashes.size
    return Math.round((this.#hashes.size / this.#limit) * SPACE)
  }
}

function hashOf(text: string): number {
  return createHash('sha1').update(text).digest().readUIntBE(0, 6)
}
