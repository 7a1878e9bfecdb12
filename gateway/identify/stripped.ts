/** Which headers the upstream does not get, because a credential is in them. */
import type { CredentialHeader } from '../plugin.js'
import type { Facts } from '../types.js'

/** Characters of a scheme's name (RFC 9110 section 5.6.2). */
const TOKEN = /[\w!#$%&'*+.^`|~-]/

/**
 * The header, if a credential is in it.
 *
 * @param isSilent true if the identifier was asked and found no credential of its own where it looks
 */
export function strippedFrom(
  facts: Facts,
  strips: string | CredentialHeader,
  isSilent: boolean,
): string | undefined {
  const { header, scheme } = typeof strips === 'string' ? { header: strips, scheme: undefined } : strips
  const field = facts.header(header)?.toLowerCase()
  if (field === undefined) return undefined
  if (scheme === undefined) return isSilent ? undefined : header
  return isIn(field, scheme.toLowerCase(), isSilent) ? header : undefined
}

/**
 * Identifiers look for a scheme and a blank where the field begins. Behind another credential, as when the field is sent
 * twice, or with something else than a blank, nobody looks: a key is hidden there all the same.
 */
function isIn(field: string, scheme: string, isSilent: boolean): boolean {
  const begins = field.startsWith(`${scheme} `)
  if (begins && !isSilent) return true
  return field.split(',').some((element, i) => {
    if (i === 0 && begins) return false
    const written = element.trimStart()
    return written.startsWith(scheme) && !TOKEN.test(written[scheme.length] ?? '')
  })
}
