/**
 * The name of an access entry that this page creates: different places get different names, so that no entry replaces
 * another.
 */

const LONGEST = 64
/** Texts whose names differ from all other names: IPv4 networks, and lowercase projects that resemble no network. */
const PLAIN = {
  networks: /^[0-9.]+(\/[0-9]+)?$/,
  projects: /^[0-9.-]*[a-z][a-z0-9.-]*$/,
} as const

/** Lowercase letters, digits, "." and "-". Where this does not identify the places, a hash is appended. */
export function entryName(action: string, who: keyof typeof PLAIN, places: readonly string[]): string {
  const text = places.join(' ')
  const name = `${action}-${text.toLowerCase().replace(/[^a-z0-9.]+/g, '-')}`
  if (PLAIN[who].test(text) && name.length <= LONGEST) return name
  const behind = `-${hashOf(`${who} ${text}`)}`
  return name.slice(0, LONGEST - behind.length) + behind
}

/** FNV-1a with 32 bits: the browser's own hashes are available over HTTPS only. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193)
  return (hash >>> 0).toString(36)
}
