/** Turns a request described in data (by a tool or a test) into a request head, so that the same code handles it. */
import { randomUUID } from 'node:crypto'
import { GatewayError } from '../errors.js'
import { fieldsOf } from '../http1/fields.js'
import { requestFraming } from '../http1/framing.js'
import { type Framing, type ParsedRequest, WireError } from '../http1/message.js'
import { asksForWebSocket } from '../http1/request-head.js'
import type { RequestHead } from '../message.js'

export interface Written {
  readonly method: string
  /** Path with its query, or an absolute URL. */
  readonly target: string
  /** Flat name, value, … list, Host among them. */
  readonly fields: readonly string[]
  /** Address of the TCP peer. */
  readonly peer: string
}

/** Only builds the head; nothing is sent or received. Throws the error that a client would get for bad framing. */
export function requestOf({ method, target, fields: raw, peer }: Written): RequestHead {
  const fields = fieldsOf(raw)
  const head = { method, target, version: '1.1' as const, fields }
  const upgrade = framingOf(head).kind === 'none' && asksForWebSocket(head)
  const unknown = { localPort: 0, encrypted: false, fingerprints: undefined }
  return { ...head, id: randomUUID(), upgrade, peer: { ...unknown, address: peer } }
}

function framingOf(head: ParsedRequest): Framing {
  try {
    return requestFraming(head)
  } catch (error) {
    if (error instanceof WireError) throw new GatewayError(error.code)
    throw error
  }
}
