import type { IncomingMessage } from 'node:http'
import type { Facts, Project } from '../types.js'

/** Fields that belong to one connection, not to the message (RFC 9110 section 7.6.1). */
const HOP_BY_HOP = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Request fields that never pass: the gateway sets them anew, or has already acted on them. */
const REPLACED = new Set(['expect', 'forwarded', 'host', 'x-real-ip'])

/** What a client's Connection field must not be able to remove. */
const PROTECTED = new Set(['content-length', 'via'])

/** Of ours, the one list that continues the upstream's own instead of replacing it. */
const CONTINUED = 'access-control-expose-headers'

/** Names a client may write with `_`, which servers of the CGI family read as `-`. */
const MEANINGFUL_AS_DASHED = new Set([...HOP_BY_HOP, ...REPLACED, ...PROTECTED])

const INTERNAL = 'x-sluice-'
const FORWARDED = 'x-forwarded-'

/**
 * The flat raw fields of the request as the upstream gets it: connection fields and those a client may not set
 * removed, order and repeats of the rest kept, then Via, X-Forwarded-*, Forwarded (RFC 7239) and the internal
 * fields. `fingerprints` are the lower-case names that only a trusted hop may send.
 */
export function upstreamRequestFields(
  req: IncomingMessage,
  facts: Facts,
  project: Project | undefined,
  fingerprints: { readonly ja3: string; readonly ja4: string },
): string[] {
  const authority = authorityOf(req)
  const fields: string[] = []
  if (authority !== undefined) fields.push('Host', authority)

  const named = namedByConnection(req.headers.connection)
  const counted = facts.method === 'OPTIONS'
  const raw = req.rawHeaders
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    let known = name.toLowerCase()
    if (HOP_BY_HOP.has(known) || REPLACED.has(known)) continue
    if (named?.has(known) && !PROTECTED.has(known)) continue
    let vouched = facts.trusted
    if (known.includes('_')) {
      known = known.replaceAll('_', '-')
      if (MEANINGFUL_AS_DASHED.has(known)) continue
      // A trusted hop writes the name as configured; another spelling is the client's, which the hop let through.
      vouched = false
    }
    if (known.startsWith(INTERNAL) || known.startsWith(FORWARDED)) continue
    if (!vouched && (known === fingerprints.ja3 || known === fingerprints.ja4)) continue
    const value = raw[i + 1] as string
    fields.push(name, counted && known === 'max-forwards' ? oneLess(value) : value)
  }

  fields.push('Via', `${req.httpVersion} sluice`)
  pushForwarded(fields, req, facts, authority ?? '')
  fields.push('x-sluice-request-id', facts.id)
  if (project !== undefined) {
    fields.push('x-sluice-project', project.id)
    fields.push('x-sluice-plan', project.plan)
    fields.push('x-sluice-environment', project.environment)
  }
  return fields
}

/**
 * The flat raw fields of the answer as the client gets it: the upstream's without connection fields, and ours in
 * place of the upstream's of the same names. 1xx and 204 have no length (RFC 9110 section 8.6).
 */
export function answerFields(status: number, upstream: readonly string[], own: readonly string[]): string[] {
  let connection: string | undefined
  for (let i = 0; i < upstream.length; i += 2) {
    const name = upstream[i] as string
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue
    connection = connection === undefined ? upstream[i + 1] : `${connection},${upstream[i + 1]}`
  }
  const named = namedByConnection(connection)
  const replaced: string[] = []
  for (let i = 0; i < own.length; i += 2) {
    const name = (own[i] as string).toLowerCase()
    if (name !== CONTINUED) replaced.push(name)
  }

  const lengthless = status < 200 || status === 204
  const fields: string[] = []
  for (let i = 0; i < upstream.length; i += 2) {
    const name = upstream[i] as string
    const known = name.toLowerCase()
    if (HOP_BY_HOP.has(known) || replaced.includes(known)) continue
    if (known === 'content-length' ? lengthless : named?.has(known)) continue
    fields.push(name, upstream[i + 1] as string)
  }
  for (const part of own) fields.push(part)
  return fields
}

/** Max-Forwards as the next hop reads it (RFC 9110 section 7.6.2); what is no number passes as it is. */
function oneLess(hops: string): string {
  return /^\d{1,15}$/.test(hops) ? String(Math.max(0, Number(hops) - 1)) : hops
}

/** The fields a Connection field names; undefined for the everyday values. */
function namedByConnection(connection: string | undefined): Set<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined
  return new Set(connection.split(',').map(name => name.trim().toLowerCase()))
}

/** The authority the client asked for; that of an absolute-form target wins over Host (RFC 9112 section 3.2.2). */
function authorityOf(req: IncomingMessage): string | undefined {
  const url = req.url as string
  if (url[0] === '/') return req.headers.host
  return /^https?:\/\/([^/?]*)/i.exec(url)?.[1]
}

/** A trusted peer's account of the client is kept and continued; anybody else's is replaced by what we know. */
function pushForwarded(fields: string[], req: IncomingMessage, facts: Facts, authority: string): void {
  const heard = (name: string): string | undefined => (facts.trusted ? facts.header(name) : undefined)
  const proto = heard('x-forwarded-proto') ?? ('encrypted' in req.socket ? 'https' : 'http')
  const hops = heard('x-forwarded-for')
  fields.push('X-Forwarded-For', hops === undefined ? facts.client : `${hops}, ${peerOf(req)}`)
  fields.push('X-Forwarded-Proto', proto)
  fields.push('X-Forwarded-Host', heard('x-forwarded-host') ?? authority)
  fields.push('X-Forwarded-Port', heard('x-forwarded-port') ?? portOf(req, authority))

  const elements = heard('forwarded')
  const from = elements === undefined ? facts.client : peerOf(req)
  const node = from.includes(':') ? `"[${from}]"` : from
  const element = `for=${node};host="${authority}";proto=${proto}`
  fields.push('Forwarded', elements === undefined ? element : `${elements}, ${element}`)
}

/** The TCP peer; a socket shows IPv4 clients of an IPv6 listener as `::ffff:1.2.3.4`. */
function peerOf(req: IncomingMessage): string {
  const address = req.socket.remoteAddress ?? ''
  return address.startsWith('::ffff:') ? address.slice(7) : address
}

function portOf(req: IncomingMessage, authority: string): string {
  return /:(\d+)$/.exec(authority)?.[1] ?? String(req.socket.localPort ?? '')
}

/** A coding we did not undo would reach the client as if it were the content (RFC 9112 section 6.1). */
export function framedAsChunkedAtMost(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    if (name.length !== 17 || name.toLowerCase() !== 'transfer-encoding') continue
    if ((fields[i + 1] as string).toLowerCase() !== 'chunked') return false
  }
  return true
}

/** Flat fields as the object Node's client takes; repeats stay apart. */
export function byName(fields: readonly string[]): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = Object.create(null)
  for (let i = 0; i < fields.length; i += 2) {
    const name = (fields[i] as string).toLowerCase()
    const value = fields[i + 1] as string
    const before = headers[name]
    headers[name] = before === undefined ? value : [before, value].flat()
  }
  return headers
}

/** An answer's head as it is written. */
export function headOf(statusLine: string, fields: readonly string[]): string {
  let head = `${statusLine}\r\n`
  for (let i = 0; i < fields.length; i += 2) head += `${fields[i]}: ${fields[i + 1]}\r\n`
  return `${head}\r\n`
}
