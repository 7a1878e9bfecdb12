/** Decodes a message body from the bytes of its connection (RFC 9112 sections 6 and 7). */
import { ChunkLine } from './chunk-line.js'
import { parseFields } from './fields.js'
import { CR, LF } from './grammar.js'
import { HeadBuffer } from './head-buffer.js'
import { type Framing, WireError } from './message.js'
import { checkTrailers, MAX_TRAILERS } from './trailers.js'

export interface BodySink {
  /** A piece of the content: a slice of the pushed bytes, never a copy, never empty. */
  onData(chunk: Buffer): void
  /** Called once, after the last byte, with the trailer section as a flat list. */
  onEnd(trailers: readonly string[]): void
}

const NOTHING = Buffer.alloc(0)
const NO_TRAILERS: readonly string[] = []

/** What the next byte belongs to. */
type Place = 'content' | 'size' | 'cr' | 'lf' | 'trailers' | 'last-lf' | 'behind'

/** Reads one body. Without a body (framing `none`) it is `done` from the start and never calls the sink. */
export class BodyDecoder {
  readonly #sink: BodySink
  readonly #isChunked: boolean
  #place: Place
  /** Bytes of the content, or of the current chunk, still to come. */
  #left: number
  #line: ChunkLine | undefined
  #trailers: HeadBuffer | undefined

  constructor(framing: Framing, sink: BodySink) {
    this.#sink = sink
    this.#isChunked = framing.kind === 'chunked'
    this.#left = framing.kind === 'close' ? Number.POSITIVE_INFINITY : framing.bytes
    if (this.#isChunked) {
      this.#line = new ChunkLine()
      this.#place = 'size'
    } else this.#place = this.#left === 0 ? 'behind' : 'content'
  }

  /** True once the last byte of the body has been pushed. */
  get done(): boolean {
    return this.#place === 'behind'
  }

  /** Consumes bytes and returns those after the end of the body. Throws `bad-framing`. */
  push(bytes: Buffer): Buffer {
    let at = 0
    while (at < bytes.length && this.#place !== 'behind') {
      if (this.#place === 'content') at = this.#content(bytes, at)
      else if (this.#place === 'size') at = this.#size(bytes, at)
      else if (this.#place === 'trailers') return this.#trailerSection(bytes.subarray(at))
      else at = this.#mark(bytes, at)
    }
    if (at === 0) return bytes.length === 0 ? NOTHING : bytes
    return at === bytes.length ? NOTHING : bytes.subarray(at)
  }

  /** The connection has ended. True if the body is complete. */
  end(): boolean {
    if (this.#left === Number.POSITIVE_INFINITY && this.#place === 'content') this.#finish(NO_TRAILERS)
    return this.done
  }

  #content(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.#left)
    this.#left -= end - at
    const isLast = this.#left === 0
    if (isLast && this.#isChunked) this.#place = 'cr'
    this.#sink.onData(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end))
    if (isLast && !this.#isChunked) this.#finish(NO_TRAILERS)
    return end
  }

  #size(bytes: Buffer, at: number): number {
    const line = this.#line as ChunkLine
    const end = line.read(bytes, at)
    if (line.complete) {
      this.#left = line.take()
      this.#place = this.#left > 0 ? 'content' : 'trailers'
    }
    return end
  }

  /** CR and LF after a chunk, and the LF of the final empty line. */
  #mark(bytes: Buffer, at: number): number {
    if (bytes[at] !== (this.#place === 'cr' ? CR : LF))
      throw new WireError('bad-framing', 'the end of a chunk')
    if (this.#place === 'cr') this.#place = 'lf'
    else if (this.#place === 'lf') this.#place = 'size'
    else this.#finish(NO_TRAILERS)
    return at + 1
  }

  #trailerSection(bytes: Buffer): Buffer {
    if (this.#trailers === undefined && bytes[0] === CR) {
      this.#place = 'last-lf'
      return this.push(bytes.subarray(1))
    }
    this.#trailers ??= new HeadBuffer(MAX_TRAILERS)
    const { trailers, rest } = readTrailers(this.#trailers, bytes) ?? {}
    if (trailers === undefined) return NOTHING
    this.#finish(trailers)
    return rest ?? NOTHING
  }

  #finish(trailers: readonly string[]): void {
    this.#place = 'behind'
    this.#sink.onEnd(trailers)
  }
}

/** Reads a trailer section. It has the grammar of a head, but a fault in it is reported as `bad-framing`. */
function readTrailers(
  buffer: HeadBuffer,
  bytes: Buffer,
): { trailers: readonly string[]; rest: Buffer } | undefined {
  try {
    const gathered = buffer.add(bytes)
    return gathered && { trailers: trailerFields(gathered.head), rest: gathered.rest }
  } catch (error) {
    throw new WireError('bad-framing', `trailers: ${(error as Error).message}`)
  }
}

function trailerFields(section: string): readonly string[] {
  const { raw, names } = parseFields(section, 0)
  checkTrailers(names)
  return raw
}
