import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { ErrorCode } from '../errors.js'
import type { UpstreamSettings } from './transport.js'

/**
 * A client's body on its way to an upstream. Whoever reads it may destroy it (undici does when the upstream
 * fails) without cutting the client's connection, over which the answer has yet to go.
 */
export class Upload extends Readable {
  readonly #source: Readable
  readonly #idleMs: number
  readonly #onFailure: (code: ErrorCode) => void
  /** Bytes that may still come. */
  #room: number
  #wanted = false
  /** Runs only while the upstream could take more than the client sends. */
  #timer: NodeJS.Timeout | undefined

  /** Calls `onFailure` when `source` is waited for and gives nothing for too long, or more than the upstream takes. */
  constructor(
    source: Readable,
    { timeouts, maxBody = Number.POSITIVE_INFINITY }: Pick<UpstreamSettings, 'timeouts' | 'maxBody'>,
    onFailure: (code: ErrorCode) => void,
  ) {
    super()
    this.#source = source
    this.#idleMs = timeouts.idleMs
    this.#room = maxBody
    this.#onFailure = onFailure
    source.on('end', this.#onEnd).on('close', this.#onClose).on('error', this.#onClose)
    this.on('error', () => {})
  }

  /** True when the client has sent the whole body. */
  get complete(): boolean {
    return this.#source.readableEnded
  }

  override _read(): void {
    // Only now: a client that expects a 100 gets it when its body begins to flow.
    if (!this.#wanted) this.#source.on('data', this.#onData)
    this.#wanted = true
    this.#source.resume()
    this.#timer ??= setTimeout(this.#onFailure, this.#idleMs, 'request-timeout')
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const source = this.#source
    this.#rest()
    source.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose)
    source.pause()
    done(error)
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#timer?.refresh()
    this.#room -= chunk.length
    if (this.#room < 0) this.#onFailure('body-too-large')
    else if (!this.push(chunk)) {
      this.#source.pause()
      this.#rest()
    }
  }

  readonly #onEnd = (): void => {
    this.#rest()
    this.push(null)
  }

  readonly #onClose = (): void => {
    if (!this.#source.readableEnded) this.destroy(new Error('the client left while it sent its body'))
  }

  #rest(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

/** True when a request says at once that its body is larger than the upstream takes. */
export function isTooLarge({ headers }: IncomingMessage, { maxBody }: UpstreamSettings): boolean {
  return maxBody !== undefined && Number(headers['content-length'] ?? 0) > maxBody
}

/** True when the request has a body to upload. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
