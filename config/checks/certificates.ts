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
  const { cert, key, clientCa, acme } = listen.tls ?? {}
  const tls = listen.tls && {
    ...listen.tls,
    ...(cert !== undefined && { cert: beside(cert) }),
    ...(key !== undefined && { key: beside(key) }),
    ...(clientCa !== undefined && { clientCa: beside(clientCa) }),
    ...(acme && {
      acme: {
        ...acme,
        folder: beside(acme.folder),
        ...(acme.ca !== undefined && { ca: beside(acme.ca) }),
      },
    }),
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
  const faults: UnplacedProblem[] = listen.tls === undefined ? [] : ownFaults(listen.tls, read)
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

type ListenerTls = NonNullable<Gateway['listen']['tls']>

/** What is wrong with the certificate of the listener, or with how it is to be ordered. */
function ownFaults(tls: ListenerTls, read: ReadText): UnplacedProblem[] {
  const at = (key: string) => ['listen', 'tls', key]
  const { cert: certFile, key: keyFile, acme } = tls
  if (acme !== undefined) {
    const written = (['cert', 'key'] as const).filter(key => tls[key] !== undefined)
    const message = 'With "acme" the certificate is ordered: leave out "cert" and "key", or "acme".'
    const ca = acme.ca === undefined ? undefined : certificatesIn(acme.ca, read)
    return [
      ...written.slice(0, 1).map(key => ({ path: at(key), message })),
      ...(ca && 'fault' in ca ? [{ path: [...at('acme'), 'ca'], message: ca.fault }] : []),
    ]
  }
  if (certFile === undefined || keyFile === undefined) {
    const message =
      'A certificate is needed: name its files in "cert" and "key", or say in "acme" where it is ordered.'
    return [{ path: ['listen', 'tls'], message }]
  }
  const cert = certificatesIn(certFile, read)
  const key = privateKeyIn(keyFile, read)
  const faults: UnplacedProblem[] = []
  if ('fault' in cert) faults.push({ path: at('cert'), message: cert.fault })
  if ('fault' in key) faults.push({ path: at('key'), message: key.fault })
  if (!('key' in key && 'first' in cert)) return faults
  if (!cert.first.checkPrivateKey(key.key)) {
    return [{ path: at('key'), message: `This is not the key of the first certificate in ${certFile}.` }]
  }
  const fault = contextFault(certFile, { cert: cert.text, key: key.text })
  return fault === undefined ? [] : [{ path: at('cert'), message: fault }]
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
