/** A request as somebody writes it down, in the form in which requests come in: so the same code reads both. */
import { randomUUID } from 'node:crypto'
import { GatewayError } from '../errors.js'
import { fieldsOf } from '../http1/fields.js'
import { requestFraming } from '../http1/framing.js'
import { WireError } from '../http1/message.js'
import type { RequestHead } from '../message.js'

export interface Written {
  readonly method: string
  /** Path with its query, or an absolute address. */
  readonly target: string
  /** Flat name, value, … list, Host among them. */
  readonly fields: readonly string[]
  /** Address of the TCP peer. */
  readonly peer: string
}

/** Nothing is sent or received: there is only the head. Throws what a client would hear of its framing. */
export function requestOf({ method, target, fields: raw, peer }: Written): RequestHead {
  const fields = fieldsOf(raw)
  const head = { method, target, version: '1.1' as const, fields }
  try {
    requestFraming(head)
  } catch (error) {
    if (error instanceof WireError) throw new GatewayError(error.code)
    throw error
  }
  const upgrade = fields.get('upgrade')?.toLowerCase() === 'websocket'
  const unknown = { localPort: 0, encrypted: false, fingerprints: undefined }
  return { ...head, id: randomUUID(), upgrade, peer: { ...unknown, address: peer } }
}
