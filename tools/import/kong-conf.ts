/** kong.conf: which proxies Kong trusted with clients' addresses. */
import type { Migration } from './migration.js'

/** @returns false when clients' addresses would not be known */
export function importKongConf(text: string, file: string, into: Migration): boolean {
  const settings = new Map<string, { readonly value: string; readonly line: number }>()
  for (const [i, line] of text.split('\n').entries()) {
    const mark = line.indexOf('=')
    const name = line.slice(0, Math.max(0, mark)).trim()
    if (mark > 0 && !name.startsWith('#'))
      settings.set(name, {
        value:
          line
            .slice(mark + 1)
            .split(' #')[0]
            ?.trim() ?? '',
        line: i + 1,
      })
  }
  const odd = text.split('\n').findIndex(line => !/^[ \t]*(?:$|#|[a-z0-9_]{1,100}[ \t]*=)/.test(line))
  if (odd >= 0) {
    into.unreadable({ line: odd + 1, col: 1, file }, 'This is not kong.conf, where a line is "name = value".')
    return false
  }
  const trusted = settings.get('trusted_ips')
  if (trusted === undefined || trusted.value === '') return true
  const at = { line: trusted.line, col: 1, file }
  const header = settings.get('real_ip_header')?.value ?? 'X-Real-IP'
  if (header.toLowerCase() !== 'x-forwarded-for') {
    into.lost(
      at,
      `the clients’ addresses behind ${trusted.value}. They tell it in ${header}, and only X-Forwarded-For is read: let them send it, and name them under trustedProxies.`,
    )
    return false
  }
  into.trust(
    trusted.value
      .split(',')
      .map(one => one.trim())
      .filter(one => one !== ''),
    at,
  )
  return true
}
