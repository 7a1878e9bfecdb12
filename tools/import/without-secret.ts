/**
 * An address that may be shown: without the user and password before its host. A password with a slash does not parse
 * as part of an address, so everything before the last "@" is removed.
 */
export function withoutSecret(text: string): string {
  return text
    .split(' ')
    .map(word => {
      const at = word.lastIndexOf('@')
      if (at < 0) return word
      const scheme = /^[a-z][a-z0-9+.-]{0,20}:\/\//i.exec(word)?.[0] ?? ''
      return scheme + word.slice(at + 1)
    })
    .join(' ')
}
