/**
 * Facts of requests that were never sent: a tool, a test or a log describes them in words. They are read by the code
 * that reads those of a connection.
 */
import { randomUUID } from 'node:crypto'
import { GatewayError } from '../errors.js'
import { fieldsOf } from '../http1/fields.js'
import { requestFraming } from '../http1/framing.js'
import { type Framing, type ParsedRequest, WireError } from '../http1/message.js'
import { asksForWebSocket } from '../http1/request-head.js'
import type { Fingerprints, RequestHead } from '../message.js'
import type { Facts } from '../types.js'
import { clientAddress, networkOf, TrustedProxies } from './client.js'
import { type CredentialNames, createCredentials } from './credentials.js'
import { hostOf, readFacts } from './facts.js'
import { checkMethod } from './head-rules.js'
import { parseTarget } from './target.js'

/** A whole request. */
export interface RequestText {
  readonly method: string
  /** Path with its query, or an absolute URL. */
  readonly target: string
  /** Flat name, value, … list, Host among them. */
  readonly fields: readonly string[]
  /** Address of the TCP peer. */
  readonly peer: string
  readonly fingerprints?: Partial<Fingerprints> | undefined
  /** Whether it carries a credential, if the fields do not say. */
  readonly authenticated?: boolean | undefined
}

/** The settings of gateway.yaml that a request's facts depend on. */
export interface ReadingSettings {
  readonly trustedProxies: readonly string[]
  readonly fingerprintHeaders: Fingerprints
  readonly credentials: CredentialNames
}

/**
 * The facts of a whole request, and the credential that its fields contain. Nothing is sent or received. Throws the
 * error that a client would get for it.
 */
export function readWritten(
  request: RequestText,
  { trustedProxies, fingerprintHeaders, credentials }: ReadingSettings,
): { readonly facts: Facts; readonly credential: string | undefined } {
  const { authenticated } = request
  const head = headOf(request)
  const inFields = createCredentials(credentials)
  const credentialIn = authenticated === undefined ? inFields : () => (authenticated ? 'given' : undefined)
  const trusted = new TrustedProxies(trustedProxies)
  const facts = readFacts(head, { trusted, fingerprintHeaders, credentialIn })
  return { facts, credential: inFields(head.fields) }
}

function headOf({ method, target, fields: written, peer, fingerprints }: RequestText): RequestHead {
  const fields = fieldsOf(written)
  const head = { method, target, version: '1.1' as const, fields }
  const upgrade = framingOf(head).kind === 'none' && asksForWebSocket(head)
  const connection = { address: peer, localPort: 0, encrypted: false, fingerprints }
  return { ...head, id: randomUUID(), upgrade, peer: connection }
}

function framingOf(head: ParsedRequest): Framing {
  try {
    return requestFraming(head)
  } catch (error) {
    if (error instanceof WireError) throw new GatewayError(error.code)
    throw error
  }
}

/** A request of which little more than a line is known. */
export interface WrittenLine extends Partial<Pick<Facts, 'authenticated' | 'ja3' | 'ja4'>> {
  readonly method: string
  readonly target: string
  readonly host?: string | undefined
  /** An address, with or without a port. */
  readonly client?: string | undefined
}

const NOBODY = new TrustedProxies([])

/** The facts of a line; undefined for `OPTIONS *`, which no rule sees. Throws the error that a client would get for it. */
export function readLine(
  { method, target, host = '', client = '', authenticated = false, ja3, ja4 }: WrittenLine,
  headers?: ReadonlyMap<string, string>,
): Facts | undefined {
  checkMethod(method)
  const { path, query, authority } = parseTarget(method, target)
  if (path === '*') return undefined
  const { address } = clientAddress(client, undefined, NOBODY)
  const known = { id: '', method, path, query, host: hostOf(authority ?? host), authenticated, ja3, ja4 }
  return factsOf({ ...known, client: address, network: networkOf(address) }, headers)
}

/** Facts as far as they are known; the others are those of a request without fields from nowhere. */
export function factsOf(
  known: Pick<Facts, 'id' | 'method' | 'path'> & Partial<Facts>,
  headers?: ReadonlyMap<string, string>,
): Facts {
  const { client = '' } = known
  return {
    query: '',
    host: '',
    client,
    network: client,
    trusted: false,
    authenticated: false,
    ...known,
    header: name => headers?.get(name),
  }
}
