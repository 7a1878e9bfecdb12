/**
 * The PROXY protocol, versions 1 and 2: what a load balancer that passes connections on says of their client, before
 * anything else (https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt).
 */
import { isIP, type Socket } from 'node:net'
import { parseAddress } from '../../config/words/address.js'

/** A line of version 1 has at most 107 bytes (section 2.1). */
const LONGEST_LINE = 107
/** Addresses and what may follow them; balancers send some hundred bytes. */
const LONGEST_HEADER = 4096
/** Section 2.2. */
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const FIXED = 16
const DEADLINE_MS = 10_000

/** What a header says. */
export interface ProxyHeader {
  /** Its length in bytes. */
  readonly bytes: number
  /** The client; undefined if the balancer itself is the client, as for its health checks. */
  readonly client: string | undefined
}

/** The header that `bytes` begins with; `incomplete` if more of it has to come, `malformed` if it is none. */
export function proxyHeaderIn(bytes: Buffer): ProxyHeader | 'incomplete' | 'malformed' {
  if (bytes[0] === SIGNATURE[0]) return version2(bytes)
  return version1(bytes)
}

function version1(bytes: Buffer): ProxyHeader | 'incomplete' | 'malformed' {
  const text = bytes.toString('latin1', 0, LONGEST_LINE)
  const end = text.indexOf('\r\n')
  if (end === -1) {
    const begins = 'PROXY '.startsWith(text) || text.startsWith('PROXY ')
    return begins && bytes.length < LONGEST_LINE ? 'incomplete' : 'malformed'
  }
  const line = text.slice(0, end)
  const header = (client: string | undefined) => ({ bytes: end + 2, client })
  if (/^PROXY UNKNOWN(?: |$)/.test(line)) return header(undefined)
  const [, family, source = '', target = ''] =
    /^PROXY (TCP[46]) (\S+) (\S+) \d{1,5} \d{1,5}$/.exec(line) ?? []
  const version = family === 'TCP4' ? 4 : 6
  const isRight = [source, target].every(
    address => isIP(address) === version && parseAddress(address) !== undefined,
  )
  return family !== undefined && isRight ? header(source) : 'malformed'
}

function version2(bytes: Buffer): ProxyHeader | 'incomplete' | 'malformed' {
  const seen = Math.min(bytes.length, SIGNATURE.length)
  if (bytes.compare(SIGNATURE, 0, seen, 0, seen) !== 0) return 'malformed'
  if (bytes.length < FIXED) return 'incomplete'
  const [kind = 0, family = 0] = bytes.subarray(12)
  const length = bytes.readUInt16BE(14)
  const [version, command] = [kind >> 4, kind & 0xf]
  if (version !== 2 || command > 1 || length > LONGEST_HEADER) return 'malformed'
  const whole = FIXED + length
  if (bytes.length < whole) return 'incomplete'
  if (command === 0) return { bytes: whole, client: undefined }
  const addresses = bytes.subarray(FIXED, whole)
  switch (family) {
    case 0x11:
      if (length < 12) return 'malformed'
      return { bytes: whole, client: addresses.subarray(0, 4).join('.') }
    case 0x21:
      if (length < 36) return 'malformed'
      return { bytes: whole, client: ipv6(addresses.subarray(0, 16)) }
    // Unix sockets, datagrams, and what is unspecified name no client of a TCP connection.
    default:
      return { bytes: whole, client: undefined }
  }
}

function ipv6(bytes: Buffer): string {
  return Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16)).join(':')
}

/** Why a connection whose header was awaited must be closed. */
export type NoHeader = 'malformed' | 'gone'

/**
 * Reads the header of a connection and puts back what follows it: the client's address, the peer's own if the header names
 * none. `gone` if the connection ended, or sent no header in time.
 */
export function readProxyHeader(socket: Socket): Promise<{ readonly client: string } | NoHeader> {
  return new Promise(resolve => {
    let seen: Buffer = Buffer.alloc(0)
    const onReadable = (): void => {
      for (let chunk = socket.read(); chunk !== null; chunk = socket.read())
        seen = Buffer.concat([seen, chunk])
      if (seen.length === 0) return
      const header = proxyHeaderIn(seen)
      if (header === 'incomplete') return
      if (header === 'malformed') {
        done(header)
        return
      }
      const client = header.client ?? socket.remoteAddress
      done(client === undefined ? 'gone' : { client }, seen.subarray(header.bytes))
    }
    const gone = () => done('gone')
    const timer = setTimeout(gone, DEADLINE_MS)
    const done = (read: { readonly client: string } | NoHeader, rest?: Buffer): void => {
      clearTimeout(timer)
      socket.off('readable', onReadable).off('end', gone).off('close', gone).off('error', gone)
      if (rest !== undefined && rest.length > 0 && !socket.destroyed) socket.unshift(rest)
      resolve(read)
    }
    socket.on('readable', onReadable).on('end', gone).on('close', gone).on('error', gone)
  })
}
