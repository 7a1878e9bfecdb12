import { isIP } from 'node:net'
import type { ErrorCode } from '../errors.js'
import type { Address } from '../http1/connector.js'
import type { Fields, IncomingBody, IncomingRequest, OutgoingResponse, Takeover } from '../message.js'
import type { Facts, Project } from '../types.js'

/** One admitted request on its way to an upstream and back. */
export interface Exchange {
  readonly facts: Facts
  readonly project: Project | undefined
  readonly req: IncomingRequest
  readonly res: OutgoingResponse
  /** The request's body, when it was looked at before; else that of `req`. */
  readonly body?: IncomingBody | undefined
  /** Flat `name, value, …` fields of ours; they replace the upstream's fields of the same names. */
  readonly answerFields: readonly string[]
  /** Lower-case names of further fields of the upstream that the client does not get. */
  readonly removedFields?: readonly string[] | undefined
  /**
   * True while the request holds an in-flight slot: when the client leaves after its whole request was sent, the
   * upstream's answer is read and discarded to its end or the idle limit, or until this becomes false.
   */
  readonly keepUpstream: boolean
  /** Called before each attempt, with the address that is asked (scheme, host and port). */
  onAttempt(address: string): void
  /** Called at most once, with the head of the upstream's answer, also when the client has left meanwhile. */
  onAnswer(status: number, fields: Fields): void
  /** Called exactly once, when upstream work has ended, however it ended. */
  onUpstreamEnd(): void
  /** Called at most once, and only while no byte of an answer was sent: the caller answers. `cause` is for the log. */
  fail(code: ErrorCode, cause?: string): void
  /** Called at most once: the upstream's answer broke off, and the client's was cut. */
  onCut(cause: string): void
}

/** One request to switch to WebSocket. */
export interface UpgradeExchange {
  readonly facts: Facts
  readonly project: Project | undefined
  readonly req: IncomingRequest
  /** For an upstream's refusal. */
  readonly res: OutgoingResponse
  /** The client's connection, once the upstream has switched; from then on `res` is of no use. */
  takeOver(): Takeover
  /** Flat fields of ours for the answer to the handshake. */
  readonly answerFields: readonly string[]
  /** As in Exchange. */
  readonly removedFields?: readonly string[] | undefined
  /** As in Exchange. */
  onAttempt(address: string): void
  /** Called once when the upstream answered: 101, or the status of its refusal. */
  onAnswer(status: number, fields: Fields): void
  /** Called exactly once, when both sides are closed. */
  onUpstreamEnd(): void
  /** As in Exchange. */
  fail(code: ErrorCode, cause?: string): void
  /** As in Exchange. */
  onCut(cause: string): void
}

/** A way to one upstream. */
export interface Transport {
  forward(exchange: Exchange): void
}

/** `close` cuts every WebSocket. */
export interface UpgradeTransport {
  upgrade(exchange: UpgradeExchange): void
  /** Tells the client of every open WebSocket that this server is going away, so that it goes to another. */
  goAway(): void
  close(): void
}

/** Limits on waiting for an upstream, and for a client that uses it. */
export interface Timeouts {
  readonly connectMs: number
  readonly headMs: number
  /** A pause inside a body, in either direction. */
  readonly idleMs: number
  /** An open tunnel without a byte either way. */
  readonly upgradeIdleMs: number
}

export interface UpstreamSettings {
  readonly name: string
  /** Its addresses, one at least: scheme, host and port; requests bring their own path. */
  readonly urls: readonly string[]
  /** PEM text of the authorities that may have signed the certificate of an https upstream; absent: the public ones. */
  readonly ca?: string | undefined
  /** Most requests at a time on one address; a further one waits as long as for a connection. Default 1024. */
  readonly connections?: number
  /** Most bytes of a request's body; absent: any number. */
  readonly maxBody?: number | undefined
  readonly timeouts: Timeouts
  /** One of the embedded services: it is told whom a request is counted by, for its throttle of wrong keys. */
  readonly embedded?: boolean
  /** Lower-case name of the field in which a POST may name the method that is meant; absent: none passes. */
  readonly methodOverride?: string | undefined
  /** Lower-case names of the fields that only a trusted hop may send on. */
  readonly fingerprintHeaders: { readonly ja3: string; readonly ja4: string }
}

/** Where an origin's connections go. A certificate is verified against the host of its URL, never the client's Host. */
export function addressOf({ protocol, hostname, port }: URL, ca: string | undefined): Address {
  const host = hostname.replace(/^\[|\]$/g, '')
  if (protocol === 'http:') return { host, port: Number(port || 80) }
  // An address is never sent as a server's name (RFC 6066 section 3); it is verified all the same.
  return { host, port: Number(port || 443), tls: { servername: isIP(host) === 0 ? host : '', ca } }
}

/** The origins of an upstream's addresses; throws a sentence when one says more than an origin can. */
export function originsOf({ name, urls }: Pick<UpstreamSettings, 'name' | 'urls'>): [URL, ...URL[]] {
  const [first, ...rest] = urls.map(url => originOf(name, url))
  if (first === undefined) throw new Error(`upstream '${name}' has no address.`)
  return [first, ...rest]
}

function originOf(name: string, url: string): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const plain = parsed?.pathname === '/' && parsed.search === '' && parsed.username === ''
  if (parsed === undefined || !plain || !/^https?:$/.test(parsed.protocol)) {
    throw new Error(`upstream '${name}': '${url}' is not an origin. Write it like http://127.0.0.1:4433.`)
  }
  return parsed
}
