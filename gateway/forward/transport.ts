import { isIP } from 'node:net'
import type { Balance, UpstreamProtocol } from '../../config/words/words.js'
import type { ErrorCode } from '../errors.js'
import type { Address } from '../http1/connector.js'
import type { Fields, IncomingBody, IncomingRequest, OutgoingResponse, Takeover } from '../message.js'
import type { RouteChanges } from '../route.js'
import type { Facts, Project } from '../types.js'
import type { AnswerTail, MessageGate } from '../verdict.js'
import type { HealthSettings } from './health-check.js'
import type { RetrySettings } from './retries.js'

/** One admitted request, or request to switch to WebSocket, on its way to an upstream and back. */
export interface Exchange {
  readonly facts: Facts
  readonly project: Project | undefined
  readonly req: IncomingRequest
  readonly res: OutgoingResponse
  /** What the route changes, if anything. */
  readonly changes?: RouteChanges | undefined
  /** Lower-case names of request fields that the upstream does not get. */
  readonly strippedFields?: readonly string[] | undefined
  /** The request body, if it has been inspected before; otherwise that of `req` is used. */
  readonly body?: IncomingBody | undefined
  /** Our own fields, flat `name, value, …`; they replace the upstream's fields of the same names. */
  readonly answerFields: readonly string[]
  /** Lower-case names of further upstream fields that are removed. */
  readonly removedFields?: readonly string[] | undefined
  /** Flat; they stand beside the upstream's fields of the same names. */
  readonly addedFields?: readonly string[] | undefined
  /**
   * True while the request holds an in-flight slot. If the client leaves after its whole request was sent, the
   * upstream's response is read and discarded until its end, the idle limit, or until this becomes false.
   */
  readonly keepUpstream: boolean
  /** Gets the response's body while it passes, if somebody asked for its end. */
  readonly tail?: AnswerTail | undefined
  /** Asked about each message of the client, if it becomes a WebSocket whose messages are counted. */
  readonly messages?: MessageGate | undefined
  /** Called when the request is written to an upstream, so that its outcome is up to that. */
  onSent?(): void
  /** Called before each attempt, with the address of the backend (scheme, host and port). */
  onAttempt(address: string): void
  /** Called at most once, with the head of the upstream's response, even if the client has left meanwhile. */
  onAnswer(status: number, fields: Fields): void
  /** Called exactly once, when the upstream's part has ended, however it ended; for an open WebSocket, when it is closed. */
  onUpstreamEnd(): void
  /** Called at most once, and only before the first byte of a response: the caller responds. `cause` is for the log. */
  fail(code: ErrorCode, cause?: string): void
  /** Called at most once: the upstream's response broke off, and the response to the client was cut. */
  onCut(cause: string): void
}

/** Forwards requests to one upstream. */
export interface Transport {
  forward(exchange: Exchange): void
}

/** Forwards WebSockets to one upstream. `close` cuts every one of them. */
export interface UpgradeTransport {
  /** `takeOver` hands over the client's connection once the upstream has switched; `exchange.res` must not be used afterwards. */
  upgrade(exchange: Exchange, takeOver: () => Takeover): void
  /** Tells the client of every open WebSocket that this server is going away, so that it connects to another. */
  goAway(): void
  close(): void
}

/** Limits on waiting for an upstream, and for a client that uses it. */
export interface Timeouts {
  readonly connectMs: number
  readonly headMs: number
  /** A pause inside a body, in either direction. */
  readonly idleMs: number
  /** How long an open tunnel may stay without a byte either way. */
  readonly upgradeIdleMs: number
}

export interface WeightedUrl {
  readonly url: string
  /** Requests that it gets compared with others; 1 for an address that is given as text. */
  readonly weight: number
}

export interface UpstreamSettings {
  readonly name: string
  /** At least one address: scheme, host and port, without a path. */
  readonly urls: readonly (string | WeightedUrl)[]
  /** How often names are resolved anew, all addresses used; when absent, a name is resolved for each connection. */
  readonly resolveMs?: number | undefined
  /** Default `least-busy`. */
  readonly balance?: Balance | undefined
  /** How long an address that comes back gets fewer requests than its weight says; not at all when absent. */
  readonly slowStartMs?: number | undefined
  /** CA certificates for an https upstream, as PEM text; the public ones when absent. */
  readonly ca?: string | undefined
  /** Of its requests; WebSockets are always opened by HTTP/1.1. Default `http1`. */
  readonly protocol?: UpstreamProtocol | undefined
  /** Checks of each address; none when absent. */
  readonly health?: HealthSettings | undefined
  /** When a request is sent again; only what is certain to be harmless when absent. */
  readonly retries?: RetrySettings | undefined
  /** Most concurrent requests to one address; further ones wait up to `connectMs`. Default 1024. */
  readonly connections?: number | undefined
  /** Most bytes of a request body; no limit when absent. */
  readonly maxBody?: number | undefined
  readonly timeouts: Timeouts
  /**
   * For the directory and identity service, embedded or not: they are sent the client's network, and the secret by
   * which they know this gateway.
   */
  readonly service?: { readonly secret: string } | undefined
  /** Lower-case name of the field in which a POST may name its real method; when absent, no such field is passed on. */
  readonly methodOverride?: string | undefined
  /** Lower-case names of the fingerprint fields, which are passed on from a trusted hop only. */
  readonly fingerprintHeaders: { readonly ja3: string; readonly ja4: string }
  /** Lower-case names of further fields that are passed on from a trusted hop only. */
  readonly proxyHeaders: readonly string[]
  /** Lower-case names of the fields by which callers are counted or identified; other spellings are not passed on. */
  readonly countedHeaders?: readonly string[] | undefined
}

/** Where to connect for an origin. Certificates are verified against the host of its URL, never the client's Host. */
export function addressOf({ url, ip }: Origin, ca: string | undefined): Address {
  const { protocol, hostname, port } = url
  const name = hostname.replace(/^\[|\]$/g, '')
  const host = ip ?? name
  if (protocol === 'http:') return { host, port: Number(port || 80) }
  // An IP address is never sent as the server name (RFC 6066 section 3), but it is still verified.
  return { host, port: Number(port || 443), tls: { servername: isIP(name) === 0 ? name : '', ca } }
}

/** An address of an upstream. */
export interface Origin {
  readonly url: URL
  readonly weight: number
  /** What the name in `url` was resolved to; otherwise it is resolved for each connection. */
  readonly ip?: string | undefined
}

/** The addresses of an upstream; throws if one of them is not a plain origin. */
export function originsOf({ name, urls }: Pick<UpstreamSettings, 'name' | 'urls'>): [Origin, ...Origin[]] {
  const [first, ...rest] = urls.map(one => {
    const { url, weight } = typeof one === 'string' ? { url: one, weight: 1 } : one
    return { url: originOf(name, url), weight }
  })
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
