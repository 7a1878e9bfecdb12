/** The certificate in force: as it was when the configuration was checked, whatever its files say by now. */
import { checkCertificates } from '../../config/checks/certificates.js'
import { ConfigFiles, type FileContents } from '../../config/files.js'
import type { Gateway } from '../../config/schema/gateway.js'
import type { StoredCertificate } from '../acme/folder.js'
import type { CertificatePair } from '../listen/certificate.js'
import type { Log } from '../types.js'

type Listen = Gateway['listen']

/**
 * The certificate as a configuration was loaded with it, or else the ordered one; undefined without TLS, and where none
 * was issued yet. A file that the configuration no longer names, because `listen` is that of the start, is read now.
 * @throws a sentence if it cannot be used
 */
export function certificateOf(
  listen: Listen,
  contents: FileContents,
  ordered: StoredCertificate | undefined,
): CertificatePair | undefined {
  if (listen.tls === undefined) return undefined
  const files = new ConfigFiles(contents)
  const [fault] = checkCertificates({ listen, upstreams: {} }, file => files.text(file))
  if (fault !== undefined) throw new Error(fault.message)
  const textOf = (file: string) => (files.text(file) as { readonly text: string }).text
  const { cert, key, clientCa } = listen.tls
  const ca = clientCa === undefined ? {} : { ca: textOf(clientCa) }
  if (cert === undefined || key === undefined) return ordered && { ...ordered, ...ca }
  return { file: cert, cert: textOf(cert), key: textOf(key), ...ca }
}

/** The same for the next configuration, or the next order: what cannot be used is logged, and the last one stays. */
export function nextCertificate(
  listen: Listen,
  contents: FileContents,
  last: CertificatePair | undefined,
  log: Log,
  ordered: StoredCertificate | undefined = last,
): CertificatePair | undefined {
  try {
    return certificateOf(listen, contents, ordered)
  } catch (error) {
    const reason = (error as Error).message
    log.error({ reason }, 'Certificate refused: the previous one stays in use')
    return last
  }
}
