/**
 * The head of a request from the fields of its header block (RFC 9113 sections 8.2 and 8.3), with the rules, the grammar
 * and the form of HTTP/1.1: what is refused there is malformed here.
 */
import { requestFraming } from '../../http1/framing.js'
import { consistsOf, TARGET, TOKEN } from '../../http1/grammar.js'
import { Fields } from '../../message.js'
import { asStreamError, checkField, malformed } from '../field-rules.js'
import type { HeaderField } from '../hpack/header-field.js'

/**
 * A head above what a request may have is still read, so that it gets a response; beyond these limits its stream is reset.
 * Bytes as RFC 9113 section 6.5.2 counts them.
 */
export const MAX_LIST = { fields: 164, bytes: 24 * 1024 }

export interface RequestParts {
  readonly method: string
  /** Empty for CONNECT, which is refused later. */
  readonly target: string
  readonly fields: Fields
  /** The Content-Length; undefined if there is none. */
  readonly length: number | undefined
}

/** @throws {StreamError} if the request is malformed */
export function requestParts(list: readonly HeaderField[]): RequestParts {
  const pseudo = new PseudoFields()
  const count = pseudo.read(list)
  const { method, path, authority } = pseudo
  const raw: string[] = []
  const names: string[] = []
  if (authority !== undefined) {
    raw.push('host', authority)
    names.push('host')
  }
  let cookie: string | undefined
  let hasHost = authority === undefined
  for (let i = count; i < list.length; i++) {
    const field = list[i] as HeaderField
    checkField(field)
    const { name, value } = field
    // Clients send each cookie in a field of its own (RFC 9113 section 8.2.3).
    if (name === 'cookie') cookie = cookie === undefined ? value : `${cookie}; ${value}`
    // The first may say what :authority says. Another makes two, refused as in HTTP/1.1 (RFC 9113 section 8.3.1).
    else if (name === 'host' && !hasHost && value.toLowerCase() === authority?.toLowerCase()) hasHost = true
    else {
      raw.push(name, value)
      names.push(name)
    }
  }
  if (cookie !== undefined) {
    raw.push('cookie', cookie)
    names.push('cookie')
  }
  const fields = new Fields(raw, names)
  return { method, target: path, fields, length: lengthOf(method, path, fields) }
}

class PseudoFields {
  method = ''
  path = ''
  authority: string | undefined
  #scheme: string | undefined
  #hasPath = false

  /** Returns the number of pseudo-header fields, which come first. */
  read(list: readonly HeaderField[]): number {
    let count = 0
    for (; count < list.length; count++) {
      const { value, kind } = list[count] as HeaderField
      if (kind === ':method') this.#setMethod(value)
      else if (kind === ':path') this.#setPath(value)
      else if (kind === ':authority') this.authority = once(this.authority, value)
      else if (kind === ':scheme') this.#scheme = once(this.#scheme, value)
      else break
    }
    this.#check()
    return count
  }

  #setMethod(value: string): void {
    if (this.method !== '' || value === '' || !consistsOf(value, TOKEN)) throw malformed(':method')
    this.method = value
  }

  #setPath(value: string): void {
    if (this.#hasPath || value === '' || !consistsOf(value, TARGET)) throw malformed(':path')
    this.#hasPath = true
    this.path = value
  }

  #check(): void {
    if (this.method === 'CONNECT') {
      // It names no path, only where to connect to (RFC 9113 section 8.5).
      if (this.#hasPath || this.#scheme !== undefined || this.authority === undefined)
        throw malformed('CONNECT')
      return
    }
    if (this.method === '' || !this.#hasPath) throw malformed('a pseudo-header field is missing')
    if (this.#scheme !== 'https' && this.#scheme !== 'http') throw malformed(':scheme')
    if (this.path[0] !== '/' && !(this.path === '*' && this.method === 'OPTIONS')) throw malformed(':path')
  }
}

function once(before: string | undefined, value: string): string {
  if (before !== undefined) throw malformed('a pseudo-header field twice')
  return value
}

function lengthOf(method: string, target: string, fields: Fields): number | undefined {
  if (!fields.has('content-length')) return undefined
  return asStreamError(() => requestFraming({ method, target, version: '1.1', fields }).bytes)
}
