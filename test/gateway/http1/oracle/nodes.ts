/** Reads connections with Node's parser (llhttp), through its server and its client on an in-memory stream. */
import { type ClientRequest, createServer, type IncomingMessage, METHODS, request } from 'node:http'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { fieldsOf } from '../../../../gateway/http1/fields.js'
import type { Message, Reading } from './reading.js'

/** Larger than any head that is read here. */
const MAX_HEADER = 256 * 1024

/** Node rejects all other methods, so they cannot be compared. */
export const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS)

/** A connection without a network: whatever is written to it is dropped. */
class Wire extends Duplex {
  override _read(): void {}
  override _write(_chunk: unknown, _encoding: unknown, done: () => void): void {
    done()
  }
  setTimeout(): this {
    return this
  }
  setNoDelay(): this {
    return this
  }
  setKeepAlive(): this {
    return this
  }
}

class Nodes implements Reading {
  readonly messages: Message[] = []
  refused: string | undefined
  over = false

  take(line: readonly string[], fields: readonly string[], incoming?: IncomingMessage): void {
    if (this.over) return
    const message: Message = { line, fields, body: '', trailers: [], complete: incoming === undefined }
    this.messages.push(message)
    if (incoming === undefined) return
    incoming.on('data', chunk => {
      message.body += chunk.toString('latin1')
    })
    incoming.on('error', () => undefined)
    incoming.on('end', () => {
      message.trailers = incoming.rawTrailers
      message.complete = incoming.complete
    })
  }
}

const server = createServer({ maxHeaderSize: MAX_HEADER, requireHostHeader: false, keepAliveTimeout: 0 })
server.maxHeadersCount = 0
const readings = new WeakMap<object, Nodes>()
const seen = (req: IncomingMessage): void => {
  const { method = '', url = '', httpVersion } = req
  const reading = readings.get(req.socket)
  if (reading === undefined) return
  reading.take([method, url, httpVersion], req.rawHeaders, req)
  // Node loses the bytes after an upgrade offer, which a server may ignore (RFC 9110 section 7.8).
  if (req.headers.upgrade !== undefined && /upgrade/i.test(req.headers.connection ?? '')) reading.over = true
}
server.on('request', seen).on('checkContinue', seen).on('checkExpectation', seen)
server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
  const reading = readings.get(socket)
  if (reading !== undefined) reading.refused ??= error.code
})

/** How Node's server reads `pieces`. */
export async function readRequests(pieces: readonly Buffer[]): Promise<Reading> {
  const wire = new Wire()
  const reading = new Nodes()
  readings.set(wire, reading)
  server.emit('connection', wire)
  await play(wire, pieces)
  wire.destroy()
  return reading
}

/** How Node's client, having sent `method`, reads `pieces` followed by the end of the connection. */
export async function readAnswers(pieces: readonly Buffer[], method: string): Promise<Reading> {
  const wire = new Wire()
  const reading = new Nodes()
  const options = {
    method,
    maxHeaderSize: MAX_HEADER,
    createConnection: () => wire as unknown as Socket,
  }
  const asked: ClientRequest = request(options)
  asked.maxHeadersCount = 0
  asked.on('information', ({ httpVersion, statusCode, statusMessage, rawHeaders }) => {
    reading.take([httpVersion, String(statusCode), statusMessage], rawHeaders)
    // `close` in an interim response says nothing about the final one after it, but Node reads no further.
    reading.over = fieldsOf(rawHeaders).names.includes('connection')
  })
  asked.on('upgrade', answer => reading.take(lineOf(answer), answer.rawHeaders))
  asked.on('response', answer => reading.take(lineOf(answer), answer.rawHeaders, answer))
  asked.on('error', (error: NodeJS.ErrnoException) => {
    reading.refused ??= error.code
  })
  asked.end()
  await turn()
  await play(wire, pieces)
  wire.push(null)
  await turn()
  await turn()
  asked.destroy()
  wire.destroy()
  return reading
}

function lineOf({ httpVersion, statusCode, statusMessage = '' }: IncomingMessage): string[] {
  return [httpVersion, String(statusCode), statusMessage]
}

/** The first turn starts the stream; the others deliver what was read. */
async function play(wire: Wire, pieces: readonly Buffer[]): Promise<void> {
  await turn()
  for (const piece of pieces) if (!wire.destroyed) wire.push(piece)
  await turn()
  await turn()
}
