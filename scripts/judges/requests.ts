/** Parses requests for the judges' upstream, verbatim and one at a time. */

import type { Socket } from 'node:net'

interface Head {
  readonly method: string
  readonly target: string
  /** Names in lowercase. */
  readonly fields: readonly (readonly [string, string])[]
  readonly isLast: boolean
}
export interface ReadRequest extends Head {
  readonly body: Buffer
}
interface Framed {
  readonly head: Head
  /** Undefined for a chunked body. */
  readonly length: number | undefined
}
interface Body {
  readonly bytes: Buffer
  /** With its framing. */
  readonly size: number
}

/** Calls `take` with each request of a socket. */
export function readRequests(socket: Socket, take: (request: ReadRequest) => void): void {
  let unread: Buffer = Buffer.alloc(0)
  let request: Framed | undefined
  const next = () => {
    request ??= readHead()
    if (request === undefined) return false
    const { head, length } = request
    const body = length === undefined ? readChunks(unread) : readLength(unread, length)
    if (body === undefined) return false
    unread = unread.subarray(body.size)
    request = undefined
    take({ ...head, body: body.bytes })
    return true
  }
  const readHead = (): Framed | undefined => {
    const end = unread.indexOf('\r\n\r\n')
    if (end < 0) return undefined
    const [line = '', ...lines] = unread.subarray(0, end).toString('latin1').split('\r\n')
    unread = unread.subarray(end + 4)
    const [method = '', target = '', version] = line.split(' ')
    const fields = lines.map(text => {
      const colon = text.indexOf(':')
      return [text.slice(0, colon).toLowerCase(), text.slice(colon + 1).trim()] as const
    })
    const value = (name: string) => fields.find(([key]) => key === name)?.[1].toLowerCase()
    if (value('expect') === '100-continue') socket.write('HTTP/1.1 100 Continue\r\n\r\n')
    const connection = value('connection') ?? ''
    const isLast = version === 'HTTP/1.0' ? !connection.includes('keep-alive') : connection.includes('close')
    const isChunked = value('transfer-encoding') === 'chunked'
    const length = isChunked ? undefined : Number(value('content-length') ?? 0)
    return { head: { method, target, fields, isLast }, length }
  }
  socket.on('data', chunk => {
    unread = Buffer.concat([unread, chunk])
    while (next());
  })
}

function readLength(bytes: Buffer, length: number): Body | undefined {
  return bytes.length < length ? undefined : { bytes: bytes.subarray(0, length), size: length }
}

function readChunks(bytes: Buffer): Body | undefined {
  const parts: Buffer[] = []
  let at = 0
  for (;;) {
    const end = bytes.indexOf('\r\n', at)
    if (end < 0) return undefined
    const size = Number.parseInt(bytes.subarray(at, end).toString('latin1'), 16)
    at = end + 2
    if (size === 0) break
    if (bytes.length < at + size + 2) return undefined
    parts.push(bytes.subarray(at, at + size))
    at += size + 2
  }
  // After the last chunk: trailers, and the empty line.
  for (;;) {
    const end = bytes.indexOf('\r\n', at)
    if (end < 0) return undefined
    const isEmpty = end === at
    at = end + 2
    if (isEmpty) return { bytes: Buffer.concat(parts), size: at }
  }
}
