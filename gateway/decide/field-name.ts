/** Names of form fields as upstreams may read them. */

/**
 * The lower-case name without what some upstreams drop: PHP leading blanks and all from a bracket or a NUL, Express's qs
 * and Rack the brackets of `email[]`, `email[0]` and `[email]`.
 */
export function fieldName(written: string): string {
  const [, name = ''] = /^[\s[]*([^[\]\0]*)/.exec(written) ?? []
  return name.trim().toLowerCase()
}
