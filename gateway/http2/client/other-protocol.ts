/** Upstreams that do not speak HTTP/2, and what their operators are told. */
import type { Socket } from 'node:net'

/** How an HTTP/1.1 server begins whatever it says. */
const HTTP1 = Buffer.from('HTTP/1.', 'latin1')
/** What TLS libraries call a server’s refusal of all protocols that it was offered. */
const NO_PROTOCOL = 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL'

export const SPEAKS_HTTP1 = 'the upstream speaks HTTP/1.1; use protocol: http1'
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

/** True if the first bytes of a connection are HTTP/1.1. */
export function isHttp1(bytes: Buffer): boolean {
  return bytes.subarray(0, HTTP1.length).equals(HTTP1)
}
