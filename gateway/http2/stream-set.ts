/** The open streams of a connection, what each may send, and what came of those that are not open (RFC 9113 section 5). */
import { ConnectionError, StreamError } from './errors.js'
import type { FrameWriter } from './frame-writer.js'
import { MAX_STREAMS } from './limits.js'
import { DEFAULT_WINDOW, FLOW_CONTROL_ERROR, MAX_31_BITS, PROTOCOL_ERROR, STREAM_CLOSED } from './protocol.js'
import { type Sender, SendOrder } from './send-order.js'

export interface NumberedSender extends Sender {
  readonly id: number
}

export class StreamSet<Stream extends NumberedSender> {
  /** The highest number of a stream so far, or 0. */
  last = 0
  /** Content that the peer takes on a new stream. */
  initialWindow = DEFAULT_WINDOW
  readonly #writer: FrameWriter
  readonly #open = new Map<number, Stream>()
  readonly #order = new SendOrder()
  /** Streams reset from here, of which frames may still arrive (RFC 9113 section 5.1), the latest last. */
  readonly #reset: number[] = []

  constructor(writer: FrameWriter) {
    this.#writer = writer
  }

  get count(): number {
    return this.#open.size
  }

  get(id: number): Stream | undefined {
    return this.#open.get(id)
  }

  all(): Iterable<Stream> {
    return this.#open.values()
  }

  add(stream: Stream): void {
    this.#open.set(stream.id, stream)
  }

  /** The stream is no longer open; false if it was not. */
  delete(stream: Stream): boolean {
    this.#order.delete(stream)
    return this.#open.delete(stream.id)
  }

  /** The stream has something new to send. */
  send(stream: Stream): void {
    this.#order.send(stream)
  }

  /** There is room for frames again. */
  onRoom(): void {
    this.#order.run()
  }

  /** Tells the peer that the stream has ended. */
  reset(id: number, code: number): void {
    this.#writer.reset(id, code)
    this.#reset.push(id)
    if (this.#reset.length > MAX_STREAMS) this.#reset.shift()
  }

  wasReset(id: number): boolean {
    return this.#reset.includes(id)
  }

  /** @throws {ConnectionError} */
  checkNotIdle(id: number): void {
    if (id > this.last) throw new ConnectionError(PROTOCOL_ERROR, 'a frame on an idle stream')
  }

  /**
   * A frame has come for a stream that is not open: only one that was reset from here may still get some.
   * @throws {ConnectionError} @throws {StreamError}
   */
  checkWasReset(id: number): void {
    this.checkNotIdle(id)
    if (!this.wasReset(id)) throw new StreamError(STREAM_CLOSED, 'a frame on a closed stream')
  }

  /** @throws {ConnectionError} @throws {StreamError} */
  onWindowUpdate(id: number, increment: number): void {
    if (id === 0) {
      if (increment === 0) throw new ConnectionError(PROTOCOL_ERROR, 'an increment of 0')
      this.#writer.window += increment
      if (this.#writer.window > MAX_31_BITS)
        throw new ConnectionError(FLOW_CONTROL_ERROR, 'too large a window')
      this.#order.onConnectionWindow()
      return
    }
    this.checkNotIdle(id)
    const stream = this.#open.get(id)
    if (stream === undefined) return
    if (increment === 0) throw new StreamError(PROTOCOL_ERROR, 'an increment of 0')
    stream.queue.window += increment
    if (stream.queue.window > MAX_31_BITS) throw new StreamError(FLOW_CONTROL_ERROR, 'too large a window')
    if (!stream.queue.isEmpty) this.#order.send(stream)
  }

  /** The peer's INITIAL_WINDOW_SIZE, which also changes the windows of open streams. @throws {ConnectionError} */
  onInitialWindow(value: number): void {
    const change = value - this.initialWindow
    this.initialWindow = value
    if (change === 0) return
    for (const { queue } of this.#open.values()) {
      queue.window += change
      if (queue.window > MAX_31_BITS) throw new ConnectionError(FLOW_CONTROL_ERROR, 'too large a window')
    }
    if (change > 0)
      for (const stream of this.#open.values()) if (!stream.queue.isEmpty) this.#order.send(stream)
  }
}
