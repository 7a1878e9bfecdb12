import type { Socket } from 'node:net'
import type { Takeover } from '../message.js'
import { FrameFollower, GOING_AWAY } from './frames.js'

/** An open WebSocket: the sockets of both sides, joined. */
export class Tunnel {
  readonly #client: Socket
  readonly #upstream: Socket
  readonly #onEnd: () => void
  /** Of what the upstream sends. */
  readonly #frames = new FrameFollower()
  #leaving = false

  /** Sends the client the head `accepted`, and to both what the other said early. `onEnd` may be called again. */
  constructor(client: Takeover, upstream: Takeover, accepted: string, idleMs: number, onEnd: () => void) {
    this.#client = client.socket
    this.#upstream = upstream.socket
    this.#onEnd = onEnd
    this.#client.write(accepted, 'latin1')
    if (upstream.head.length > 0) this.#upstream.unshift(upstream.head)
    if (client.head.length > 0) this.#client.unshift(client.head)
    this.#upstream.pipe(this.#client).pipe(this.#upstream)
    // Behind the pipe's own listener: it is to have passed the bytes on.
    this.#upstream.on('data', bytes => this.#onFrames(bytes)).on('close', failed => this.#onClose(failed))
    this.#client.on('close', () => this.cut())
    // Whatever passes either way is read from or written to the client's socket.
    this.#client.setTimeout(idleMs, () => this.cut())
  }

  /** As soon as no frame is under way; who does not answer by then is cut at the end of the drain. */
  goAway(): void {
    if (this.#client.writableEnded) return
    this.#leaving = true
    if (!this.#frames.betweenFrames) return
    this.#upstream.unpipe(this.#client)
    this.#upstream.resume()
    // The client's own Close, which answers this one, still passes to the upstream.
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
