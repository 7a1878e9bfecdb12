/** Fingerprints of a client's TLS handshake: JA3 and JA4. */
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { calculateJa3, calculateJa4, readTlsClientHello } from 'read-tls-client-hello'
import type { Fingerprints } from '../message.js'

/** Larger than any real ClientHello, post-quantum key shares included. */
const MAX_HELLO = 16 * 1024
const RECORD_HEADER = 5
const MESSAGE_HEADER = 4
const HANDSHAKE_RECORD = 0x16
/** Most clients send one record; evasive ones split the ClientHello into several. */
const MAX_RECORDS = 8

/**
 * Reads the first message of a TLS connection and puts it back, so that the handshake can begin. Resolves to the bytes
 * read, which are no whole ClientHello if the client sends something else, too much, or leaves.
 */
export function peekHello(socket: Socket): Promise<Buffer> {
  return new Promise(resolve => {
    let seen: Buffer = Buffer.alloc(0)
    const onReadable = (): void => {
      for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) {
        seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk])
      }
      if (seen.length >= MAX_HELLO || helloIn(seen) !== 'incomplete') done()
    }
    const done = (): void => {
      socket.off('readable', onReadable).off('end', done).off('close', done)
      if (seen.length > 0 && !socket.destroyed) socket.unshift(seen)
      resolve(seen)
    }
    socket.on('readable', onReadable).on('end', done).on('close', done)
  })
}

/**
 * The fingerprints of the ClientHello at the start of `bytes`; undefined if there is none. Settles within the current
 * turn of the event loop, before anything else can arrive on the connection.
 */
export async function fingerprintsOf(bytes: Buffer): Promise<Fingerprints | undefined> {
  const hello = helloIn(bytes)
  if (typeof hello === 'string') return undefined
  try {
    const parsed = await readTlsClientHello(Readable.from(asOneRecord(hello), { objectMode: false }))
    return { ja3: calculateJa3(parsed), ja4: calculateJa4(parsed) }
  } catch {
    // A malformed ClientHello: the handshake will fail by itself.
    return undefined
  }
}

/** The handshake message in `bytes`, joined from the records it was split into (RFC 8446 section 5.1). */
function helloIn(bytes: Buffer): Buffer | 'incomplete' | 'none' {
  const fragments: Buffer[] = []
  let at = 0
  while (at < bytes.length) {
    if (bytes[at] !== HANDSHAKE_RECORD || fragments.length === MAX_RECORDS) return 'none'
    if (at + RECORD_HEADER > bytes.length) return 'incomplete'
    const end = at + RECORD_HEADER + bytes.readUInt16BE(at + 3)
    fragments.push(bytes.subarray(at + RECORD_HEADER, end))
    const message = Buffer.concat(fragments)
    if (message.length >= MESSAGE_HEADER) {
      const length = MESSAGE_HEADER + message.readUIntBE(1, 3)
      if (length > MAX_HELLO) return 'none'
      if (message.length >= length) return message.subarray(0, length)
    }
    at = end
  }
  return 'incomplete'
}

/** The package accepts a ClientHello only in a single record. */
function asOneRecord(hello: Buffer): Buffer {
  const header = Buffer.from([HANDSHAKE_RECORD, 3, 1, 0, 0])
  header.writeUInt16BE(hello.length, 3)
  return Buffer.concat([header, hello])
}
