/** Which fields are passed on and which are added, on the way to an upstream. */
import { trimBlanks } from '../http1/grammar.js'
import { takesTrailers } from '../http1/request-head.js'
import type { Fields, IncomingBody, RequestHead } from '../message.js'
import type { RequestFraming } from '../outgoing-request.js'
import type { RouteChanges } from '../route.js'
import type { Facts, Project } from '../types.js'
import type { FieldFates } from './request-fields.js'
import { type Exchange, originsOf, type UpstreamSettings } from './transport.js'

const BODYLESS: RequestFraming = { kind: 'none', bytes: 0 }
const CHUNKED: RequestFraming = { kind: 'chunked', bytes: 0 }

/** A request as it is sent to the upstream, up to its body. */
export interface FramedRequest {
  /** With the empty line that ends it. */
  readonly head: string
  readonly framing: RequestFraming
}

/** The head of the request to the upstream; the body is framed anew, by its length if that is known. */
export function framedRequest(
  exchange: Exchange,
  passing: FieldFates,
  settings: UpstreamSettings,
): FramedRequest {
  const { req, body = req.body } = exchange
  const framing = framingOf(body)
  const head =
    requestLine(exchange) +
    upstreamRequestFields(exchange, passing, settings) +
    trailersField(req, settings) +
    framingFields(framing, req.fields)
  return { head, framing }
}

/** The path as the client spelt it, where that is safe, or as the route rewrites that. */
export function requestLine({
  req,
  facts,
  changes,
}: Pick<Exchange, 'facts' | 'changes'> & { readonly req: RequestHead }): string {
  return `${req.method} ${forwardedTarget(facts, changes)} HTTP/1.1\r\n`
}

/** Path and query for the upstream. */
export function forwardedTarget(
  { path, speltPath = path, query }: Facts,
  changes: RouteChanges | undefined,
): string {
  return (changes?.path === undefined ? speltPath : changes.path.forUpstream(speltPath)) + query
}

/**
 * Tells an upstream of HTTP/2 that its trailers are welcome, without which gRPC servers refuse a request. In HTTP/1.1 the
 * field would have to be listed in Connection.
 */
function trailersField(req: RequestHead, { protocol }: Pick<UpstreamSettings, 'protocol'>): string {
  return protocol !== undefined && protocol !== 'http1' && takesTrailers(req) ? 'TE: trailers\r\n' : ''
}

function framingOf(body: IncomingBody | undefined): RequestFraming {
  if (body === undefined) return BODYLESS
  return body.length === undefined ? CHUNKED : { kind: 'length', bytes: body.length }
}

/** The framing field, if any, and the empty line. */
function framingFields({ kind, bytes }: RequestFraming, asked: Fields): string {
  if (kind === 'chunked') return 'Transfer-Encoding: chunked\r\n\r\n'
  return kind === 'length' || asked.has('content-length') ? `Content-Length: ${bytes}\r\n\r\n` : '\r\n'
}

/**
 * The fields of the request to the upstream, as text, without the framing. Connection fields and fields that a client
 * may not set are removed, the order and repeats of the rest are kept. Via, X-Forwarded-*, Forwarded (RFC 7239) and
 * the internal fields follow.
 */
export function upstreamRequestFields(
  {
    req,
    facts,
    project,
    changes,
    strippedFields,
  }: Pick<Exchange, 'facts' | 'project' | 'changes' | 'strippedFields'> & {
    readonly req: RequestHead
  },
  passing: FieldFates,
  { name: upstream, urls, service }: Pick<UpstreamSettings, 'name' | 'urls' | 'service'>,
): string {
  const { raw, names } = req.fields
  const authority = authorityOf(req)
  const named = namedByConnection(req.fields)
  const counted = req.method === 'OPTIONS'
  // An HTTP/1.0 request may lack a Host, but ours needs one (RFC 9112 section 3.2).
  let text = `Host: ${authority ?? originsOf({ name: upstream, urls })[0].url.host}\r\n`
  for (let i = 0; i < names.length; i++) {
    const name = names[i] as string
    const fate = passing.fateOf(name)
    if (fate === 'dropped' || (fate === 'vouched' && !facts.trusted)) continue
    if (strippedFields?.includes(name)) continue
    // A client must not remove an override by naming it in Connection, because rules have relied on it.
    if (fate === 'override') {
      if (req.method !== 'POST') continue
    } else if (named?.has(name) && name !== 'via') continue
    const value = raw[2 * i + 1] as string
    text += `${raw[2 * i]}: ${counted && name === 'max-forwards' ? oneLess(value) : value}\r\n`
  }
  if (changes?.fields !== undefined) text += changes.fields.textFor(facts, project)
  text += `Via: ${req.version} sluice\r\n${forwardedFields(req, facts, authority ?? '')}`
  text += `x-sluice-request-id: ${facts.id}\r\n`
  if (service) text += `x-sluice-network: ${facts.network}\r\nx-sluice-secret: ${service.secret}\r\n`
  return project === undefined ? text : text + projectFields(project)
}

/** Max-Forwards for the next hop (RFC 9110 section 7.6.2); a value that is not a number is unchanged. */
function oneLess(hops: string): string {
  return /^\d{1,15}$/.test(hops) ? String(Math.max(0, Number(hops) - 1)) : hops
}

/** The field names listed in Connection; undefined for the common values. */
export function namedByConnection(fields: Fields): Set<string> | undefined {
  const connection = fields.get('connection')
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined
  return new Set(connection.split(',').map(name => trimBlanks(name).toLowerCase()))
}

/** The requested authority; that of an absolute-form target wins over Host (RFC 9112 section 3.2.2). */
export function authorityOf({ target, fields }: RequestHead): string | undefined {
  if (target[0] === '/') return fields.get('host')
  return /^https?:\/\/([^/?]*)/i.exec(target)?.[1]
}

/**
 * Keeps and extends what a trusted peer says about the client; replaces anything else by what the gateway knows.
 */
function forwardedFields({ peer }: RequestHead, facts: Facts, authority: string): string {
  const heard = (name: string): string | undefined => (facts.trusted ? facts.header(name) : undefined)
  const from = folded(peer.address)
  const hops = heard('x-forwarded-for')
  const proto = heard('x-forwarded-proto') ?? (peer.encrypted ? 'https' : 'http')
  const host = heard('x-forwarded-host') ?? authority
  const port = heard('x-forwarded-port') ?? portOf(authority) ?? peer.localPort
  const elements = heard('forwarded')
  const node = elements === undefined ? facts.client : from
  const element = `for=${node.includes(':') ? `"[${node}]"` : node};host="${authority}";proto=${proto}`
  return (
    `X-Forwarded-For: ${hops === undefined ? facts.client : `${hops}, ${from}`}\r\n` +
    `X-Forwarded-Proto: ${proto}\r\nX-Forwarded-Host: ${host}\r\nX-Forwarded-Port: ${port}\r\n` +
    `Forwarded: ${elements === undefined ? element : `${elements}, ${element}`}\r\n`
  )
}

/** On an IPv6 listener, sockets show IPv4 clients as `::ffff:1.2.3.4`. */
function folded(address: string): string {
  return address.startsWith('::ffff:') ? address.slice(7) : address
}

function portOf(authority: string): string | undefined {
  return authority.includes(':') ? /:(\d+)$/.exec(authority)?.[1] : undefined
}

const VALUE = /^[\x20-\x7e\x80-\xff]*$/
const projectTexts = new WeakMap<Project, string>()

/**
 * Cached, since it is the same for all requests of a project. The values may come from a plugin, which must not be able
 * to inject lines. An unknown caller is named by its host, whatever it is counted by: what an upstream stores for a
 * project must not depend on the address that its user has today.
 */
function projectFields(project: Project): string {
  const known = projectTexts.get(project)
  if (known !== undefined) return known
  const { id, alias, plan, environment } = project
  const name = alias ?? id
  for (const value of [name, plan, environment]) {
    if (!VALUE.test(value))
      throw new Error(
        `a project's id, plan or environment cannot be sent as a field: ${JSON.stringify(value)}`,
      )
  }
  const parts = { 'x-sluice-project': name, 'x-sluice-plan': plan, 'x-sluice-environment': environment }
  // `join` makes one flat string: a concatenation would be cached as a chain of strings, with three times the memory.
  const text = Object.entries(parts)
    .flatMap(([name, value]) => [name, ': ', value, '\r\n'])
    .join('')
  projectTexts.set(project, text)
  return text
}
