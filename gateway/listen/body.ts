import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

/**
 * Waits for the first `limitBytes` of a body, or less when it ends or `timeoutMs` passes before. `body` then
 * yields exactly the bytes the client sends, prefix included. Rejects when the client leaves meanwhile.
 */
export function peekBody(
  req: IncomingMessage,
  limitBytes: number,
  timeoutMs: number,
): Promise<{ prefix: Buffer; body: Readable }> {
  return new Promise((resolve, reject) => {
    const prefix = new Prefix(limitBytes)
    const settle = (): void => {
      clearTimeout(timer)
      req.off('data', onData).off('end', onEnd).off('error', onLeave).off('close', onLeave)
    }
    const onData = (chunk: Buffer): void => {
      prefix.add(chunk)
      if (prefix.full) onPart()
    }
    const onPart = (): void => {
      settle()
      req.pause()
      const bytes = prefix.all()
      if (bytes.length > 0) req.unshift(bytes)
      resolve({ prefix: bytes.subarray(0, limitBytes), body: req })
    }
    const onEnd = (): void => {
      settle()
      const bytes = prefix.all()
      resolve({ prefix: bytes.subarray(0, limitBytes), body: bodyOf(bytes) })
    }
    const onLeave = (): void => {
      settle()
      reject(new Error('the client left while its body was read'))
    }
    const timer = setTimeout(onPart, timeoutMs)
    req.on('data', onData).on('end', onEnd).on('error', onLeave).on('close', onLeave)
  })
}

/**
 * The same look without holding anything up: the returned body streams on, and `onPrefix` is called once, when
 * `limitBytes` went by or the body ended. It is not called when the client leaves before.
 */
export function tapBody(
  req: IncomingMessage,
  limitBytes: number,
  onPrefix: (prefix: Buffer) => void,
): Readable {
  const prefix = new Prefix(limitBytes)
  const tell = (): void => {
    req.off('data', onData).off('end', tell)
    onPrefix(prefix.all().subarray(0, limitBytes))
  }
  const onData = (chunk: Buffer): void => {
    prefix.add(chunk)
    if (prefix.full) tell()
  }
  req.on('data', onData).on('end', tell)
  // A listener starts the flow; the bytes must wait for the one who forwards them. Where there are none, nobody will.
  if (announcesBody(req)) req.pause()
  return req
}

function announcesBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

class Prefix {
  readonly #limit: number
  readonly #chunks: Buffer[] = []
  #bytes = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
  }

  get full(): boolean {
    return this.#bytes >= this.#limit
  }

  all(): Buffer {
    return this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks, this.#bytes)
  }
}

function bodyOf(bytes: Buffer): Readable {
  return new Readable({
    read() {
      this.push(bytes)
      this.push(null)
    },
  })
}
