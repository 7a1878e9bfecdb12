/** The last bytes of a response, kept while it passes. */

import type { AnswerTail } from '../../verdict.js'

/** Enough for the usage that a model's response ends with. */
export const TAIL_BYTES = 16 * 1024

export class LastBytes implements AnswerTail {
  isComplete = false
  /** A ring: each piece is copied, because a small one would keep alive all that was read with it. */
  #ring: Buffer | undefined
  #bytes = 0

  add(chunk: Buffer): void {
    this.#ring ??= Buffer.allocUnsafeSlow(TAIL_BYTES)
    const kept = chunk.length <= TAIL_BYTES ? chunk : chunk.subarray(chunk.length - TAIL_BYTES)
    const at = (this.#bytes + chunk.length - kept.length) % TAIL_BYTES
    const copied = kept.copy(this.#ring, at)
    if (copied < kept.length) kept.copy(this.#ring, 0, copied)
    this.#bytes += chunk.length
  }

  complete(): void {
    this.isComplete = true
  }

  get isWhole(): boolean {
    return this.#bytes <= TAIL_BYTES
  }

  text(): string {
    const ring = this.#ring
    if (ring === undefined) return ''
    if (this.isWhole) return ring.toString('utf8', 0, this.#bytes)
    const at = this.#bytes % TAIL_BYTES
    return Buffer.concat([ring.subarray(at), ring.subarray(0, at)]).toString('utf8')
  }
}
