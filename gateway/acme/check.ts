/** Whether a certificate is what was ordered. */
import { createPrivateKey } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { certificatesOf } from '../../config/checks/pem.js'

/** Of a chain; usual ones have a few thousand. */
const MOST_CHARACTERS = 64 * 1024

/** What is wrong with a certificate for these domains, as the end of a sentence; undefined if it can be served. */
export function faultOf(
  { cert, key }: { readonly cert: string; readonly key: string },
  domains: readonly string[],
  now = Date.now(),
): string | undefined {
  if (cert.length > MOST_CHARACTERS) return 'is too long'
  const found = certificatesOf(cert)
  if ('fault' in found) return found.fault
  const [first] = found.certificates
  try {
    if (!first.checkPrivateKey(createPrivateKey(key))) return 'is of another key'
    createSecureContext({ cert, key })
  } catch {
    return 'cannot be used with its key'
  }
  const missing = domains.find(domain => first.checkHost(domain, { subject: 'never' }) === undefined)
  if (missing !== undefined) return `is not for ${missing}`
  if (Date.parse(first.validTo) <= now) return `ended on ${first.validTo}`
  if (Date.parse(first.validFrom) > now) return `does not begin before ${first.validFrom}`
  return undefined
}
