import type { Socket } from 'node:net'
import { CLOSING_MS, closeLingering } from '../http1/lingering-close.js'
import type { Takeover } from '../message.js'
import type { MessageGate } from '../verdict.js'
import { CountedMessages } from './counted-messages.js'
import { clientGoingAway, closeFrame, FrameFollower, GOING_AWAY } from './frames.js'

/** An open WebSocket: the sockets of both sides, joined. */
export class Tunnel {
  readonly #client: Socket
  readonly #upstream: Socket
  readonly #onEnd: () => void
  /** Follows the frames that the upstream sends. */
  readonly #frames = new FrameFollower()
  /** Admits the client's messages; undefined if nobody counts them. */
  readonly #counted: CountedMessages | undefined
  /** The Close frame that the client gets once no frame is in progress. */
  #lastFrame: Buffer | undefined
  /** Set once the client's messages were refused. */
  #closing: NodeJS.Timeout | undefined

  /**
   * Sends the client `accepted`, and each side the other's early bytes. `onEnd` may be called more than once.
   *
   * @param messages asked about each message of the client, if given
   */
  constructor(
    client: Takeover,
    upstream: Takeover,
    accepted: string,
    idleMs: number,
    onEnd: () => void,
    messages?: MessageGate,
  ) {
    this.#client = client.socket
    this.#upstream = upstream.socket
    this.#onEnd = onEnd
    this.#client.write(accepted, 'latin1')
    if (upstream.head.length > 0) this.#upstream.unshift(upstream.head)
    if (client.head.length > 0) this.#client.unshift(client.head)
    this.#upstream.pipe(this.#client)
    if (messages === undefined) this.#client.pipe(this.#upstream)
    else {
      const refuse = (status: number, reason: string) => this.#refuse(status, reason)
      this.#counted = new CountedMessages(messages, this.#client, this.#upstream, refuse)
    }
    // Added after the listener of `pipe`, so that the bytes have already been passed on.
    this.#upstream.on('data', bytes => this.#onFrames(bytes)).on('close', failed => this.#onClose(failed))
    this.#client.on('close', () => this.#onClientClose())
    // The client has left. The upstream is notified, but may take no notice: it can only finish what it is sending.
    this.#client.on('end', () => this.#upstream.setTimeout(CLOSING_MS, () => this.cut()))
    // All traffic, in both directions, goes through the client's socket, so one timeout is enough.
    this.#client.setTimeout(idleMs, () => this.cut())
  }

  /** Sends a Close frame as soon as no frame is in progress. A client that ignores it is cut when the drain ends. */
  goAway(): void {
    if (this.#client.writableEnded) return
    this.#lastFrame ??= GOING_AWAY
    if (!this.#frames.betweenFrames) return
    this.#upstream.unpipe(this.#client)
    this.#upstream.resume()
    // The Close frame with which the client replies is still passed to the upstream.
    if (this.#closing === undefined) this.#client.end(this.#lastFrame)
    else closeLingering(this.#client, this.#lastFrame.toString('latin1'))
  }

  cut(): void {
    this.#counted?.stop()
    clearTimeout(this.#closing)
    this.#upstream.destroy()
    this.#client.destroy()
    this.#onEnd()
  }

  /** Ends both sides: what the client has sent after its last admitted message reaches nobody. */
  #refuse(status: number, reason: string): void {
    this.#closing = setTimeout(() => this.cut(), CLOSING_MS)
    if (this.#upstream.writable) this.#upstream.end(clientGoingAway())
    this.#lastFrame ??= closeFrame(status, reason)
    if (this.#client.writableEnded) closeLingering(this.#client)
    else this.goAway()
  }

  #onFrames(bytes: Buffer): void {
    this.#frames.pass(bytes)
    if (this.#lastFrame !== undefined) this.goAway()
  }

  #onClose(failed: boolean): void {
    if (this.#closing !== undefined) {
      // The client reads its Close frame in its own time.
      if (this.#client.destroyed) this.cut()
    } else if (failed || !this.#upstream.readableEnded) this.cut()
    else this.#client.destroySoon()
  }

  #onClientClose(): void {
    if (this.#closing === undefined || this.#upstream.destroyed) this.cut()
  }
}
