/** The names in a client's certificate. */
import type { TLSSocket } from 'node:tls'
import type { ClientCertificate } from '../types.js'

/** One name of Node's list: those with unusual characters are JSON texts. */
const NAME = /(DNS|URI|[A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/y

/** What the client has sent; undefined if nothing. */
export function certificateOf(socket: TLSSocket): ClientCertificate | undefined {
  const { subject, subjectaltname, fingerprint256, valid_to } = socket.getPeerCertificate()
  if (fingerprint256 === undefined) return undefined
  const names = alternativeNames(subjectaltname)
  const commonName: unknown = subject?.CN
  return {
    trusted: socket.authorized,
    validUntil: Date.parse(valid_to),
    // Of several, none is the name.
    commonName: typeof commonName === 'string' ? commonName : undefined,
    dnsNames: names.flatMap(([kind, name]) => (kind === 'DNS' ? [name.toLowerCase()] : [])),
    uris: names.flatMap(([kind, name]) => (kind === 'URI' ? [name] : [])),
    fingerprint: fingerprint256.replaceAll(':', '').toLowerCase(),
  }
}

/** `DNS:a.test, URI:urn:x` as pairs; none if any of it cannot be read. */
export function alternativeNames(text = ''): [kind: string, name: string][] {
  const names: [string, string][] = []
  NAME.lastIndex = 0
  while (NAME.lastIndex < text.length) {
    const [, kind = '', written = ''] = NAME.exec(text) ?? []
    if (kind === '') return []
    try {
      names.push([kind, written.startsWith('"') ? (JSON.parse(written) as string) : written])
    } catch {
      return []
    }
  }
  return names
}
