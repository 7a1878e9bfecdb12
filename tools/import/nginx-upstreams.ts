/** The destinations of nginx's `proxy_pass`, by `upstream` or by address. */
import type { Place } from './doors.js'
import type { Migration } from './migration.js'
import type { Directive } from './nginx-text.js'
import type { UpstreamSettings } from './parts.js'
import { isConfined } from './paths.js'
import { withoutSecret } from './without-secret.js'

const SHARED = 'The addresses of an upstream share the requests.'

export class NginxUpstreams {
  readonly #into: Migration
  readonly #pools = new Map<string, readonly string[]>()
  readonly #proxied = new Map<string, string | undefined>()

  constructor(into: Migration) {
    this.#into = into
  }

  /** Adds an `upstream`. */
  add({ words: [name = ''], block = [] }: Directive): void {
    const addresses = block.flatMap(one => {
      const [address = '', ...options] = one.words
      if (/^(keepalive|zone)/.test(one.name)) return []
      if (
        one.name !== 'server' ||
        address.startsWith('unix:') ||
        options.some(word => /^(backup|down)$/.test(word))
      ) {
        this.#into.leftOut(one, `"${withoutSecret([one.name, ...one.words].join(' '))}". ${SHARED}`)
        return []
      }
      if (options.length > 0) this.#into.leftOut(one, `"${options.join(' ')}". ${SHARED}`)
      return [address]
    })
    this.#pools.set(name, addresses)
  }

  /** The upstream of a `proxy_pass`; undefined, after reporting it, when no route can lead there. */
  passed(
    one: Directive,
    place: Pick<Place, 'kind' | 'path'>,
    settings: UpstreamSettings,
  ): string | undefined {
    const [target = ''] = one.words
    const [, scheme, host = '', uri] = /^(https?:\/\/)([^/$]+)(\/[^$]*)?$/.exec(target) ?? []
    if (scheme === undefined || (target.includes('@') && !URL.canParse(target))) {
      this.#into.leftOut(
        one,
        `"proxy_pass ${withoutSecret(target)}". An upstream has fixed http:// or https:// addresses.`,
      )
      return undefined
    }
    if (uri !== undefined && isConfined(place, uri)) {
      this.#into.leftOut(
        one,
        `"proxy_pass ${withoutSecret(target)}". The upstream got no other paths than those of "${uri}", and paths are not rewritten here.`,
      )
      return undefined
    }
    if (uri !== undefined && uri !== place.path) {
      this.#into.leftOut(
        one,
        `the "${uri}" of proxy_pass. Requests reach the upstream with the path they came with.`,
      )
    }
    if (!this.#proxied.has(scheme + host)) {
      const addresses = (this.#pools.get(host) ?? [host]).map(address => scheme + address)
      this.#proxied.set(scheme + host, this.#into.upstreams.add(host, addresses, one))
    }
    if (scheme === 'https://') {
      this.#into.changedOnce(
        one,
        'the certificates of https upstreams are verified, by nginx only with "proxy_ssl_verify on". "ca" names an authority of your own.',
      )
    }
    const upstream = this.#proxied.get(scheme + host)
    if (upstream !== undefined) this.#into.upstreams.set(upstream, settings, one)
    return upstream
  }
}

const MIB = 1024 * 1024
/** nginx refuses larger bodies unless the file says otherwise, and waits so long. */
export const NGINX_DEFAULTS: UpstreamSettings = {
  maxBody: MIB,
  timeouts: { connect: 60_000, head: 60_000, idle: 60_000 },
}

/** The limits and timeouts of a block, on top of those around it. */
export function settingsOf(block: readonly Directive[], outer: UpstreamSettings): UpstreamSettings {
  let { maxBody, timeouts } = outer
  for (const { name, words } of block) {
    const [word = ''] = words
    const ms = name.startsWith('proxy_') ? millisecondsOf(word) : undefined
    if (name === 'client_max_body_size') {
      const size = bytesOf(word)
      if (size !== undefined) maxBody = size === 0 ? undefined : size
    } else if (name === 'proxy_connect_timeout' && ms !== undefined) timeouts = { ...timeouts, connect: ms }
    else if (name === 'proxy_read_timeout' && ms !== undefined) timeouts = { ...timeouts, head: ms, idle: ms }
  }
  return { ...(maxBody !== undefined && { maxBody }), ...(timeouts !== undefined && { timeouts }) }
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

function millisecondsOf(text: string): number | undefined {
  const [, count, unit = 's'] = /^(\d{1,9})(ms|s|m|h|d)?$/.exec(text) ?? []
  const ms = Number(count) * (UNITS[unit] ?? Number.NaN)
  return ms > 0 && ms <= 86_400_000 ? ms : undefined
}

function bytesOf(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d{1,9})([kmg]?)$/i.exec(text) ?? []
  if (count === undefined) return undefined
  return Number(count) * ({ k: 1024, m: MIB, g: 1024 * MIB }[unit.toLowerCase()] ?? 1)
}
