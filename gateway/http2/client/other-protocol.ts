/** Upstreams that do not speak HTTP/2, and what their operators are told. */
import type { Socket } from 'node:net'

/** How an HTTP/1.1 server begins whatever it says. */
const HTTP1 = Buffer.from('HTTP/1.', 'latin1')
/** What TLS libraries call a server’s refusal of all protocols that it was offered. */
const NO_PROTOCOL = 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL'

const NOTHING = Buffer.alloc(0)

export const SPEAKS_HTTP1 = 'the upstream speaks HTTP/1.1; use protocol: http1'
export const NO_SETTINGS = 'the upstream closed the connection before its SETTINGS; does it speak HTTP/2?'
export const NO_STREAMS = 'the upstream allows no requests (MAX_CONCURRENT_STREAMS is 0)'
export const NO_ALPN = 'the upstream did not agree to HTTP/2 (ALPN); use protocol: http1'

/** False if TLS has negotiated another protocol, or none. */
export function isHttp2Agreed(socket: Socket): boolean {
  const { alpnProtocol = 'h2' } = socket as { alpnProtocol?: string | false }
  return alpnProtocol === 'h2'
}

/** Why no connection could be opened, in words about the protocol if that was the cause. */
export function connectFault(error: NodeJS.ErrnoException): Error {
  return error.code === NO_PROTOCOL ? new Error(NO_ALPN) : error
}

/** Tells an HTTP/1.1 server by what it says first, in however many pieces. */
export class FirstBytes {
  #held = NOTHING

  /** Takes bytes, and returns those that may be read as HTTP/2: none until that is clear. Throws if it is HTTP/1.1. */
  add(bytes: Buffer): Buffer {
    const all = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes])
    const compared = Math.min(all.length, HTTP1.length)
    const isHttp1 = all.subarray(0, compared).equals(HTTP1.subarray(0, compared))
    if (isHttp1 && all.length >= HTTP1.length) throw new Error(SPEAKS_HTTP1)
    this.#held = isHttp1 ? Buffer.from(all) : NOTHING
    return isHttp1 ? NOTHING : all
  }
}
