/** Where nginx sends requests: its upstreams, and the routes of `proxy_pass`. */
import type { Migration } from './migration.js'
import type { Directive } from './nginx-text.js'
import { isConfined, type PlacePath } from './places.js'
import { type ImportedRoute, rewriteOf } from './routes.js'
import { type ImportedSettings, PATH_STAYS, type WeightedAddress, withoutSecret } from './upstreams.js'

/** The destinations of `proxy_pass`, by `upstream` or by address. */
export class NginxUpstreams {
  readonly #into: Migration
  readonly #pools = new Map<string, readonly WeightedAddress[]>()
  readonly #proxied = new Map<string, string | undefined>()

  constructor(into: Migration) {
    this.#into = into
  }

  /** Adds an `upstream`. */
  add({ words: [pool = ''], block = [] }: Directive): void {
    const addresses = block.flatMap(one => {
      const { name, words } = one
      const [address = '', ...options] = words
      const leftOut = (what: string): void =>
        this.#into.leftOut(one, `"${what}". The addresses of an upstream share the requests.`)
      if (/^(keepalive|zone|least_conn)/.test(name)) return []
      const isUnusable = address.startsWith('unix:') || options.some(word => /^(backup|down)$/.test(word))
      if (name !== 'server' || isUnusable) {
        leftOut(withoutSecret([name, ...words].join(' ')))
        return []
      }
      const weight = options.find(word => /^weight=\d{1,6}$/.test(word))
      const others = options.filter(word => word !== weight)
      if (others.length > 0) leftOut(others.join(' '))
      return [{ url: address, weight: Number(weight?.slice('weight='.length) ?? 1) }]
    })
    this.#pools.set(pool, addresses)
  }

  /** Where a `proxy_pass` leads; undefined, after reporting it, when none can lead there. */
  passed(one: Directive, place: PlacePath, settings: ImportedSettings): ImportedRoute | undefined {
    const [target = ''] = one.words
    const [, scheme, host = '', uri] = /^(https?:\/\/)([^/$]+)(\/[^$]*)?$/.exec(target) ?? []
    const shown = `"proxy_pass ${withoutSecret(target)}"`
    if (scheme === undefined || (target.includes('@') && !URL.canParse(target))) {
      this.#into.leftOut(one, `${shown}. An upstream has fixed http:// or https:// addresses.`)
      return undefined
    }
    const rewrite = uri === undefined ? {} : rewriteOf(place, uri)
    if (uri !== undefined && rewrite === undefined) {
      if (isConfined(place, uri)) {
        const why = `The upstream got no other paths than those of "${uri}", and only whole segments are replaced here.`
        this.#into.leftOut(one, `${shown}. ${why}`)
        return undefined
      }
      this.#into.leftOut(one, `the "${uri}" of proxy_pass. ${PATH_STAYS}`)
    }
    const address = scheme + host
    if (!this.#proxied.has(address)) {
      const addresses = (this.#pools.get(host) ?? [{ url: host }]).map(one => ({
        ...one,
        url: scheme + one.url,
      }))
      this.#proxied.set(address, this.#into.upstreams.add(host, addresses, one))
    }
    if (scheme === 'https://') {
      this.#into.changedOnce(
        one,
        'the certificates of https upstreams are verified, by nginx only with "proxy_ssl_verify on". "ca" names an authority of your own.',
      )
    }
    const upstream = this.#proxied.get(address)
    return upstream === undefined ? undefined : { upstream, settings, ...(rewrite && { rewrite }) }
  }
}
