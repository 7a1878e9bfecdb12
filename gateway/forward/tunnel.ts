import type { Socket } from 'node:net'
import { CLOSING_MS } from '../http1/lingering-close.js'
import type { Takeover } from '../message.js'
import { FrameFollower, GOING_AWAY } from './frames.js'

/** An open WebSocket: the sockets of both sides, joined. */
export class Tunnel {
  readonly #client: Socket
  readonly #upstream: Socket
  readonly #onEnd: () => void
  /** Follows the frames that the upstream sends. */
  readonly #frames = new FrameFollower()
  #leaving = false

  /** Sends the client `accepted`, and each side the other's early bytes. `onEnd` may be called more than once. */
  constructor(client: Takeover, upstream: Takeover, accepted: string, idleMs: number, onEnd: () => void) {
    this.#client = client.socket
    this.#upstream = upstream.socket
    this.#onEnd = onEnd
    this.#client.write(accepted, 'latin1')
    if (upstream.head.length > 0) this.#upstream.unshift(upstream.head)
    if (client.head.length > 0) this.#client.unshift(client.head)
    this.#upstream.pipe(this.#client).pipe(this.#upstream)
    // Added after the listener of `pipe`, so that the bytes have already been passed on.
    this.#upstream.on('data', bytes => this.#onFrames(bytes)).on('close', failed => this.#onClose(failed))
    this.#client.on('close', () => this.cut())
    // The client has left. The upstream is notified, but may take no notice: it can only finish what it is sending.
    this.#client.on('end', () => this.#upstream.setTimeout(CLOSING_MS, () => this.cut()))
    // All traffic, in both directions, goes through the client's socket, so one timeout is enough.
    this.#client.setTimeout(idleMs, () => this.cut())
  }

  /** Sends a Close frame as soon as no frame is in progress. A client that ignores it is cut when the drain ends. */
  goAway(): void {
    if (this.#client.writableEnded) return
    this.#leaving = true
    if (!this.#frames.betweenFrames) return
    this.#upstream.unpipe(this.#client)
    this.#upstream.resume()
    // The Close frame with which the client replies is still passed to the upstream.
    this.#client.end(GOING_AWAY)
  }

  cut(): void {
    this.#upstream.destroy()
    this.#client.destroy()
    this.#onEnd()
  }

  #onFrames(bytes: Buffer): void {
    this.#frames.pass(bytes)
    if (this.#leaving) this.goAway()
  }

  #onClose(failed: boolean): void {
    if (failed || !this.#upstream.readableEnded) this.cut()
    else this.#client.destroySoon()
  }
}
