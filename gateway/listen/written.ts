/** A request as somebody writes it down, in the form in which requests come in: so the same code reads both. */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'

export interface Written {
  readonly method: string
  /** Path with its query, or an absolute address. */
  readonly target: string
  /** Flat name, value, … list, Host among them. */
  readonly fields: readonly string[]
  /** Address of the TCP peer. */
  readonly peer: string
}

/** Nothing is sent or received: only the head can be read. */
export function requestOf({ method, target, fields, peer }: Written): IncomingMessage {
  const socket = new Socket()
  Object.defineProperty(socket, 'remoteAddress', { value: peer })
  const req = new IncomingMessage(socket)
  const headers: Record<string, string> = {}
  for (let i = 0; i < fields.length; i += 2) {
    const [name, value] = [(fields[i] as string).toLowerCase(), fields[i + 1] as string]
    headers[name] =
      headers[name] === undefined ? value : `${headers[name]}${name === 'cookie' ? '; ' : ', '}${value}`
  }
  return Object.assign(req, {
    method,
    url: target,
    headers,
    rawHeaders: [...fields],
    httpVersion: '1.1',
    httpVersionMajor: 1,
    httpVersionMinor: 1,
    upgrade: headers.upgrade?.toLowerCase() === 'websocket',
  })
}
