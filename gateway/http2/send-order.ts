import type { SendQueue } from './send-queue.js'

/** A stream with a message to send. */
export interface Sender {
  readonly queue: SendQueue
  /** Something was sent, or nothing could be. */
  onSendTurn(hasSent: boolean): void
}

/** Who sends next on a connection: each stream with something to send gets a frame in turn. */
export class SendOrder {
  /** Streams that can go on as soon as there is room. */
  readonly #ready = new Set<Sender>()
  /** Streams that wait for the window of the connection. */
  readonly #starved = new Set<Sender>()

  /** The stream has something new to send, or its window has opened. */
  send(sender: Sender): void {
    // One that waits here with nothing to send would not be told that what it sends next has to wait.
    if (sender.queue.isEmpty || this.#ready.has(sender) || this.#starved.has(sender)) return
    // Others have waited longer.
    if (this.#ready.size > 0) {
      this.#ready.add(sender)
      sender.onSendTurn(false)
      return
    }
    let hasSent = false
    let result = sender.queue.sendOne()
    for (; result === 'more'; result = sender.queue.sendOne()) hasSent = true
    if (result === 'empty') hasSent = true
    else if (result === 'full') this.#ready.add(sender)
    else if (result === 'connection-window') this.#starved.add(sender)
    sender.onSendTurn(hasSent)
  }

  /** There is room for more. */
  run(): void {
    for (const sender of this.#ready) {
      const result = sender.queue.sendOne()
      if (result === 'full') return
      this.#ready.delete(sender)
      if (result === 'more') this.#ready.add(sender)
      else if (result === 'connection-window') this.#starved.add(sender)
      sender.onSendTurn(result === 'more' || result === 'empty')
    }
  }

  /** The window of the connection has opened. */
  onConnectionWindow(): void {
    for (const sender of this.#starved) this.#ready.add(sender)
    this.#starved.clear()
    this.run()
  }

  delete(sender: Sender): void {
    this.#ready.delete(sender)
    this.#starved.delete(sender)
  }
}
