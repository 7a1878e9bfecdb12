/** Writes the frames of a connection, and knows how much content its peer takes. */
import { type FloodLimits, SMALL_PAYLOAD } from './flood.js'
import { BEGIN_ROOM, fieldRoom, HeaderEncoder } from './hpack/encoder.js'
import type { Output } from './output.js'
import {
  ACK,
  CONTINUATION,
  DATA,
  DEFAULT_WINDOW,
  END_HEADERS,
  END_STREAM,
  GOAWAY,
  HEADERS,
  MAX_PAYLOAD,
  PING,
  RST_STREAM,
  SETTINGS,
  WINDOW_UPDATE,
} from './protocol.js'

const STATUS = ':status'
const PING_BYTES = Buffer.alloc(8)

/** Header blocks are encoded here, and copied out at once. It grows with the largest head of all. */
let scratch = Buffer.allocUnsafeSlow(4096)

export class FrameWriter {
  readonly encoder = new HeaderEncoder()
  /** Content that the peer takes on all streams together (RFC 9113 section 6.9.1). */
  window = DEFAULT_WINDOW
  readonly #output: Output
  readonly #floods: FloodLimits

  constructor(output: Output, floods: FloodLimits) {
    this.#output = output
    this.#floods = floods
  }

  /** True while frames of streams must wait. */
  get isFull(): boolean {
    return this.#output.isFull
  }

  /** A head or trailers; `status`, unless it is 0, comes before the flat `fields`. */
  headers(stream: number, status: number, fields: readonly string[], endsStream: boolean): void {
    const length = this.#encode(status, fields)
    const endStream = endsStream ? END_STREAM : 0
    for (let at = 0; at === 0 || at < length; at += MAX_PAYLOAD) {
      const end = Math.min(length, at + MAX_PAYLOAD)
      const endHeaders = end === length ? END_HEADERS : 0
      const flags = at === 0 ? endStream | endHeaders : endHeaders
      this.#output.frame(end - at, at === 0 ? HEADERS : CONTINUATION, flags, stream)
      this.#output.bytes(scratch, at, end)
    }
    this.#floods.onSent()
  }

  /** At most MAX_PAYLOAD bytes of `bytes`. The caller has made sure that both windows allow them. */
  data(stream: number, bytes: Buffer, at: number, end: number, endsStream: boolean): void {
    const length = end - at
    this.#output.frame(length, DATA, endsStream ? END_STREAM : 0, stream)
    this.#output.bytes(bytes, at, end)
    this.window -= length
    if (length >= SMALL_PAYLOAD || endsStream) this.#floods.onSent()
  }

  reset(stream: number, code: number): void {
    this.#output.frame(4, RST_STREAM, 0, stream)
    this.#output.uint32(code)
  }

  /** @param stream 0 for the connection */
  windowUpdate(stream: number, bytes: number): void {
    this.#output.frame(4, WINDOW_UPDATE, 0, stream)
    this.#output.uint32(bytes)
  }

  settings(list: readonly (readonly [setting: number, value: number])[]): void {
    this.#output.frame(6 * list.length, SETTINGS, 0, 0)
    for (const [setting, value] of list) {
      this.#output.uint16(setting)
      this.#output.uint32(value)
    }
  }

  settingsAck(): void {
    this.#output.frame(0, SETTINGS, ACK, 0)
  }

  ping(): void {
    this.#output.frame(PING_BYTES.length, PING, 0, 0)
    this.#output.bytes(PING_BYTES, 0, PING_BYTES.length)
  }

  pingAck(bytes: Buffer, at: number, end: number): void {
    this.#output.frame(end - at, PING, ACK, 0)
    this.#output.bytes(bytes, at, end)
  }

  goaway(lastStream: number, code: number): void {
    this.#output.frame(8, GOAWAY, 0, 0)
    this.#output.uint32(lastStream)
    this.#output.uint32(code)
  }

  #encode(status: number, fields: readonly string[]): number {
    let room = BEGIN_ROOM + fieldRoom(STATUS, '200')
    for (let i = 0; i < fields.length; i += 2) room += fieldRoom(fields[i] as string, fields[i + 1] as string)
    if (room > scratch.length) scratch = Buffer.allocUnsafeSlow(2 * room)
    let at = this.encoder.begin(scratch, 0)
    if (status > 0) at = this.encoder.field(scratch, at, STATUS, String(status))
    for (let i = 0; i < fields.length; i += 2) {
      at = this.encoder.field(scratch, at, fields[i] as string, fields[i + 1] as string)
    }
    return at
  }
}
