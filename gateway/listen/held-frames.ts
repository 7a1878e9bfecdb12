import type { Readable } from 'node:stream'
import { Prefix } from './prefix.js'

/** Most bytes that a client sends before more are asked for: the window of a stream (RFC 9113 section 6.9.2). */
const WINDOW = 64 * 1024

/**
 * Keeps the frames of an upload that nobody reads in one buffer. Node would keep each in a Buffer of its own, and a client
 * can send one frame for every byte of its window: a hundred bytes of memory for each.
 */
export class HeldFrames {
  readonly #push: (chunk: Buffer | null) => boolean
  readonly #frames = new Prefix(WINDOW)
  #holds = true

  /** Holds from the start. Node hands over all frames by calling `push` of the stream. */
  constructor(stream: Pick<Readable, 'push'>) {
    this.#push = stream.push.bind(stream)
    stream.push = (chunk: Buffer | null) => this.#take(chunk)
  }

  hold(): void {
    this.#holds = true
  }

  /** Hands the held frames, and all further ones, to the stream. */
  release(): void {
    this.#holds = false
    if (!this.#frames.isEmpty) this.#push(this.#frames.takeAll())
  }

  /** False when Node should ask the client for no more. */
  #take(chunk: Buffer | null): boolean {
    if (chunk === null) {
      this.release()
      return this.#push(null)
    }
    if (!this.#holds) return this.#push(chunk)
    this.#frames.add(chunk)
    return false
  }
}
