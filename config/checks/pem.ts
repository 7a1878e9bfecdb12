/** Certificates of a file in PEM form (RFC 7468): all that begin in it, whole and readable. */
import { X509Certificate } from 'node:crypto'

const BEGIN = /^-----BEGIN ([A-Z0-9 ]+)-----$/
/** The beginning of such a line, which is all that is left of one in a file that was cut off. */
const MARKER = /^-----[BE]/
const CERTIFICATE = 'CERTIFICATE'

/** The certificates in their order, at least one; or what is wrong, as the end of a sentence about the file. */
export function certificatesOf(
  text: string,
): { readonly certificates: readonly [X509Certificate, ...X509Certificate[]] } | { readonly fault: string } {
  const blocks = blocksOf(text)
  if ('fault' in blocks) return blocks
  const certificates: X509Certificate[] = []
  for (const block of blocks.of(CERTIFICATE)) {
    try {
      certificates.push(new X509Certificate(block))
    } catch {
      return { fault: `has a certificate that cannot be read: number ${certificates.length + 1} in it` }
    }
  }
  const [first, ...others] = certificates
  if (first === undefined)
    return { fault: `holds no certificate in PEM form (-----BEGIN ${CERTIFICATE}-----)` }
  return { certificates: [first, ...others] }
}

function blocksOf(text: string): { of(label: string): string[] } | { readonly fault: string } {
  const blocks: { readonly label: string; readonly lines: string[] }[] = []
  let label: string | undefined
  for (const written of text.split('\n')) {
    const line = written.trimEnd()
    const begun = BEGIN.exec(line)?.[1]
    if (begun !== undefined && label === undefined) {
      label = begun
      blocks.push({ label, lines: [line] })
    } else if (line === `-----END ${label}-----`) {
      blocks.at(-1)?.lines.push(line)
      label = undefined
    } else if (MARKER.test(line)) return { fault: cutOff(label ?? begun) }
    else if (label !== undefined) blocks.at(-1)?.lines.push(line)
  }
  if (label !== undefined) return { fault: cutOff(label) }
  return { of: wanted => blocks.filter(one => one.label === wanted).map(({ lines }) => lines.join('\n')) }
}

function cutOff(label = CERTIFICATE): string {
  return `is cut off: a -----BEGIN ${label}----- in it has no -----END ${label}-----`
}

/** Whether it can have issued others, or at least itself: old forms of certificates do not say. */
export function isAuthority({ ca, issuer, subject }: X509Certificate): boolean {
  return ca || issuer === subject
}
