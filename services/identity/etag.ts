/** Versions of an identity as entity tags, so that a writer does not undo what another wrote meanwhile. */

/** Whether the writer knows the stored version. */
export type Precondition = (version: number) => boolean

/** The strong entity tag of a version (RFC 9110 section 8.8.3). */
export function etagOf(version: number): string {
  return `"${version}"`
}

/**
 * What an If-Match field requires (RFC 9110 section 13.1.1); weak tags never match, without the field every version
 * does.
 */
export function ifMatch(field: string | undefined): Precondition {
  if (field === undefined) return () => true
  const tags = field.split(',').map(tag => tag.trim())
  return version => tags.includes('*') || tags.includes(etagOf(version))
}
