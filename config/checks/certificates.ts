/** Checks that the certificates and keys named in gateway.yaml exist and belong together. */
import { createPrivateKey, type KeyObject, type X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import type { ConfigFiles } from '../files.js'
import type { UnplacedProblem } from '../problem.js'
import type { Gateway } from '../schema/gateway.js'
import { urlsOf } from '../schema/upstream.js'
import { certificatesOf, isAuthority } from './pem.js'

/** Reads a file; `fault` is a sentence that says why it failed. */
type ReadText = ConfigFiles['text']

/** The settings, with each certificate's path resolved by `beside`. */
export function resolveCertificates(gateway: Gateway, beside: (named: string) => string): Gateway {
  const { listen, upstreams } = gateway
  const tls = listen.tls && {
    ...listen.tls,
    cert: beside(listen.tls.cert),
    key: beside(listen.tls.key),
    ...(listen.tls.clientCa !== undefined && { clientCa: beside(listen.tls.clientCa) }),
  }
  const resolved = Object.entries(upstreams).map(([name, upstream]) =>
    'ca' in upstream ? [name, { ...upstream, ca: beside(upstream.ca as string) }] : [name, upstream],
  )
  return { ...gateway, listen: { ...listen, ...(tls && { tls }) }, upstreams: Object.fromEntries(resolved) }
}

/** What is wrong with the files of a resolved gateway.yaml. */
export function checkCertificates(
  { listen, upstreams }: Pick<Gateway, 'listen' | 'upstreams'>,
  read: ReadText,
): UnplacedProblem[] {
  const faults: UnplacedProblem[] = []
  if (listen.tls !== undefined) {
    const cert = certificatesIn(listen.tls.cert, read)
    const key = privateKeyIn(listen.tls.key, read)
    if ('fault' in cert) faults.push({ path: ['listen', 'tls', 'cert'], message: cert.fault })
    if ('fault' in key) faults.push({ path: ['listen', 'tls', 'key'], message: key.fault })
    if ('key' in key && 'first' in cert) {
      if (!cert.first.checkPrivateKey(key.key)) {
        const message = `This is not the key of the first certificate in ${listen.tls.cert}.`
        faults.push({ path: ['listen', 'tls', 'key'], message })
      } else {
        const fault = contextFault(listen.tls.cert, { cert: cert.text, key: key.text })
        if (fault !== undefined) faults.push({ path: ['listen', 'tls', 'cert'], message: fault })
      }
    }
  }
  if (listen.tls?.clientCa !== undefined) {
    const message = authorityFault(listen.tls.clientCa, read)
    if (message !== undefined) faults.push({ path: ['listen', 'tls', 'clientCa'], message })
  } else if (listen.tls?.clientAuth === 'require') {
    const message =
      'Clients can only be required to send a certificate where "clientCa" says who issues them.'
    faults.push({ path: ['listen', 'tls', 'clientAuth'], message })
  }
  for (const [name, upstream] of Object.entries(upstreams)) {
    if (!('ca' in upstream) || upstream.ca === undefined) continue
    const path = ['upstreams', name, 'ca']
    const ca = certificatesIn(upstream.ca, read)
    if ('fault' in ca) faults.push({ path, message: ca.fault })
    if (!urlsOf(upstream).some(url => /^https:/i.test(url))) {
      faults.push({ path, atKey: true, message: 'Only an https:// upstream has a certificate to verify.' })
    }
  }
  return faults
}

/** Why OpenSSL does not take the files: a key that is too short, or other text that looks like PEM. */
function contextFault(file: string, files: SecureContextOptions): string | undefined {
  try {
    createSecureContext(files)
    return undefined
  } catch (error) {
    const reason = (error as Error).message.replace(/^error:[^:]*:[^:]*::/, '')
    return `${file} cannot be used: ${reason}.`
  }
}

function certificatesIn(
  file: string,
  read: ReadText,
):
  | { readonly text: string; readonly first: X509Certificate; readonly all: readonly X509Certificate[] }
  | { readonly fault: string } {
  const content = read(file)
  if ('fault' in content) return { fault: `${file}: ${content.fault}` }
  const found = certificatesOf(content.text)
  if ('fault' in found) return { fault: `${file} ${found.fault}.` }
  const { certificates: all } = found
  return { text: content.text, first: all[0], all }
}

/** What is wrong with the authorities of clients' certificates. */
function authorityFault(file: string, read: ReadText): string | undefined {
  const found = certificatesIn(file, read)
  if ('fault' in found) return found.fault
  const other = found.all.findIndex(one => !isAuthority(one))
  if (other === -1) return undefined
  return `${file} has a certificate of no authority: number ${other + 1} in it is neither marked CA:TRUE nor issued by itself. Name the certificate of who issued it.`
}

function privateKeyIn(file: string, read: ReadText): { text: string; key: KeyObject } | { fault: string } {
  const content = read(file)
  if ('fault' in content) return { fault: `${file}: ${content.fault}` }
  try {
    return { text: content.text, key: createPrivateKey(content.text) }
  } catch {
    return {
      fault: `${file} holds no private key in PEM form without a passphrase (-----BEGIN PRIVATE KEY-----).`,
    }
  }
}
