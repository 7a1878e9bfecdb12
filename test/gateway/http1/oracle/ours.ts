/** Reads connections with the gateway's parser. */
import { GatewayError } from '../../../../gateway/errors.js'
import { BodyDecoder } from '../../../../gateway/http1/body-decoder.js'
import { isPersistent, requestFraming, responseFraming } from '../../../../gateway/http1/framing.js'
import { HeadBuffer } from '../../../../gateway/http1/head-buffer.js'
import { type Framing, WireError } from '../../../../gateway/http1/message.js'
import { parseRequestHead } from '../../../../gateway/http1/request-head.js'
import { parseResponseHead } from '../../../../gateway/http1/response-reader.js'
import { parseTarget } from '../../../../gateway/listen/target.js'
import type { Message, Reading } from './reading.js'

const MAX_HEAD = 32 * 1024
/** Authorities that the gateway accepts in an absolute target, checked after `parseTarget`. */
const AUTHORITY = /^(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d{0,5})?$/i

interface Head {
  readonly line: readonly string[]
  readonly fields: readonly string[]
  readonly framing: Framing
  /** Whether another message may follow. */
  readonly goesOn: boolean
}

function requestHead(text: string): Head {
  const head = parseRequestHead(text)
  const { method, target, version } = head
  if (method === 'CONNECT') throw new GatewayError('method-not-allowed')
  const { authority = 'a' } = parseTarget(method, target)
  if (!AUTHORITY.test(authority)) throw new GatewayError('bad-host')
  return {
    line: [method, target, version],
    fields: head.fields.raw,
    framing: requestFraming(head),
    goesOn: isPersistent(head),
  }
}

function answerHead(text: string, method: string): Head {
  const head = parseResponseHead(text)
  const { version, status, reason } = head
  const framing = responseFraming(head, method)
  const goesOn = status < 200 && status !== 101
  return { line: [version, String(status), reason], fields: head.fields.raw, framing, goesOn }
}

/** How a gateway reads `pieces` from a client. */
export function readRequests(pieces: readonly Buffer[]): Reading {
  return read(pieces, requestHead)
}

/** How a gateway that sent `method` reads `pieces` from an upstream that then closes. */
export function readAnswers(pieces: readonly Buffer[], method: string): Reading {
  return read(pieces, text => answerHead(text, method), true)
}

function read(pieces: readonly Buffer[], parse: (head: string) => Head, closes = false): Reading {
  const reader = new Reader(parse)
  try {
    for (const piece of pieces) reader.push(piece)
    if (closes) reader.close()
  } catch (error) {
    if (!(error instanceof WireError || error instanceof GatewayError)) throw error
    reader.refused = error.code
  }
  return reader
}

class Reader implements Reading {
  readonly messages: Message[] = []
  refused: string | undefined
  over = false
  readonly #parse: (head: string) => Head
  readonly #heads = new HeadBuffer(MAX_HEAD)
  #body: BodyDecoder | undefined
  #goesOn = true

  constructor(parse: (head: string) => Head) {
    this.#parse = parse
  }

  push(piece: Buffer): void {
    let bytes = piece
    while (bytes.length > 0 && !this.over)
      bytes = this.#body === undefined ? this.#head(bytes) : this.#data(bytes)
  }

  close(): void {
    if (this.#body === undefined ? !this.over : !this.#body.end()) this.refused = 'cut short'
  }

  #head(bytes: Buffer): Buffer {
    const gathered = this.#heads.add(bytes)
    if (gathered === undefined) return Buffer.alloc(0)
    const { line, fields, framing, goesOn } = this.#parse(gathered.head)
    const message: Message = { line, fields, body: '', trailers: [], complete: false }
    this.messages.push(message)
    this.#goesOn = goesOn
    if (framing.kind === 'none') this.#complete(message, [])
    else {
      this.#body = new BodyDecoder(framing, {
        onData: chunk => {
          message.body += chunk.toString('latin1')
        },
        onEnd: trailers => this.#complete(message, trailers),
      })
    }
    return gathered.rest
  }

  #data(bytes: Buffer): Buffer {
    const body = this.#body as BodyDecoder
    const rest = body.push(bytes)
    if (body.done) this.#body = undefined
    return rest
  }

  #complete(message: Message, trailers: readonly string[]): void {
    message.trailers = trailers
    message.complete = true
    this.over = !this.#goesOn
  }
}
