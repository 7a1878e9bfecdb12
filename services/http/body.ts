/** Reads request bodies, within bounds of size, time and memory. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpError } from './errors.js'

/** Of all bodies together, of both services when they run in one process. */
const ALL_BYTES = 32 * 1024 * 1024
/** Of the bodies of one client, so that it leaves room for others. */
const CLIENT_BYTES = ALL_BYTES / 4

/** Bytes that are free, in all and for each client. */
export class Budget {
  readonly #most: number
  readonly #mostOfOne: number
  readonly #byClient = new Map<string, number>()
  #taken = 0

  constructor(most = ALL_BYTES, mostOfOne = CLIENT_BYTES) {
    this.#most = most
    this.#mostOfOne = mostOfOne
  }

  /** Takes bytes for a client; false, and nothing is taken, when they are not free. */
  take(client: string, bytes: number): boolean {
    const taken = this.#byClient.get(client) ?? 0
    if (this.#taken + bytes > this.#most || taken + bytes > this.#mostOfOne) return false
    this.#taken += bytes
    this.#byClient.set(client, taken + bytes)
    return true
  }

  giveBack(client: string, bytes: number): void {
    if (bytes === 0) return
    this.#taken -= bytes
    const left = (this.#byClient.get(client) ?? 0) - bytes
    if (left > 0) this.#byClient.set(client, left)
    else this.#byClient.delete(client)
  }
}

/** Most bytes of one body. */
export const MAX_BODY_BYTES = 1024 * 1024
/** Most time for one body, so that a trickle does not hold its memory. */
const MAX_MS = 30_000
/** These first bytes of each body are not counted: small requests are answered while large ones have used up the budget. */
const FREE_BYTES = 4096

const budget = new Budget()

/**
 * Reads a request's body; rejects with HttpError. Its memory is counted for `client`, its network, from the first
 * byte until the response has ended, so a body that is announced but not sent costs nothing.
 */
export async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  client: string,
): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) throw tooLarge()
  const body = new Body(client)
  for (const event of ['finish', 'close']) response.once(event, () => body.release())
  return await new Promise<Buffer>((resolve, reject) => {
    const refuse = (refused: HttpError): void => {
      end()
      body.release()
      // What still comes is dropped: closing the connection in the middle of it would lose the response.
      request.resume()
      reject(refused)
    }
    const onData = (chunk: Buffer): void => {
      const refused = body.add(chunk)
      if (refused) refuse(refused)
    }
    const onEnd = (): void => {
      end()
      resolve(body.bytes)
    }
    const onGone = (): void => refuse(new HttpError(400, 'The body was cut off.', 'malformed'))
    const timer = setTimeout(
      () => refuse(new HttpError(408, `The body took longer than ${MAX_MS / 1000} seconds.`, 'timeout')),
      MAX_MS,
    ).unref()
    const end = (): void => {
      clearTimeout(timer)
      request.off('data', onData).off('end', onEnd).off('close', onGone)
    }
    // Stays: without a listener, an error of a request that is no longer read would end the process.
    request.on('error', onGone)
    request.on('data', onData).on('end', onEnd).on('close', onGone)
  })
}

/** The bytes of one body, in one buffer that grows: each of many small pieces would cost more than its bytes. */
class Body {
  readonly #client: string
  #buffer = Buffer.alloc(0)
  #length = 0
  #taken = 0
  #released = false

  constructor(client: string) {
    this.#client = client
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  /** Adds a piece. Returns why it cannot. */
  add(piece: Buffer): HttpError | undefined {
    const length = this.#length + piece.length
    if (length > MAX_BODY_BYTES) return tooLarge()
    if (length > this.#buffer.length && !this.#grow(length)) {
      return new HttpError(503, 'Too many large requests are under way. Try again shortly.', 'busy')
    }
    piece.copy(this.#buffer, this.#length)
    this.#length = length
    return undefined
  }

  release(): void {
    if (this.#released) return
    this.#released = true
    this.#buffer = Buffer.alloc(0)
    this.#length = 0
    budget.giveBack(this.#client, this.#taken)
  }

  /** False when the budget does not allow it. */
  #grow(length: number): boolean {
    const size = Math.min(MAX_BODY_BYTES, Math.max(FREE_BYTES, length, 2 * this.#buffer.length))
    const counted = Math.max(0, size - FREE_BYTES)
    if (this.#released || !budget.take(this.#client, counted - this.#taken)) return false
    this.#taken = counted
    const grown = Buffer.allocUnsafeSlow(size)
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#buffer = grown
    return true
  }
}

const tooLarge = (): HttpError => new HttpError(413, 'The body is larger than 1 MiB.', 'too_large')
