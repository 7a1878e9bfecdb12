/** nginx's upstreams, and where `proxy_pass` leads. */
import type { Migration } from './migration.js'
import { type Block, type Directive, named } from './nginx-text.js'
import { isConfined, type PlacePath } from './places.js'
import { type Rewrite, rewriteOf } from './routes.js'
import { PATH_STAYS, type WeightedAddress, withoutSecret } from './upstreams.js'

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
      if (/^(keepalive|zone|least_conn$)/.test(name)) return []
      const isUnusable = address.startsWith('unix:') || options.some(word => /^(backup|down)$/.test(word))
      if (name !== 'server' || isUnusable) {
        leftOut(withoutSecret([name, ...words].join(' ')))
        return []
      }
      const weight = Number(
        /^weight=(\d+)$/.exec(options.find(option => option.startsWith('weight=')) ?? '')?.[1] ?? 1,
      )
      const others = options.filter(option => !option.startsWith('weight='))
      if (others.length > 0) leftOut(others.join(' '))
      return [{ url: address, weight }]
    })
    this.#pools.set(pool, addresses)
  }

  /** The route of a `proxy_pass`; undefined, after reporting it, when there can be none. */
  routeOf(
    one: Directive,
    place: PlacePath,
    block: Block,
  ): (Rewrite & { readonly upstream: string }) | undefined {
    const [target = ''] = one.words
    const [, scheme, host = '', uri] = /^(https?:\/\/)([^/$]+)(\/[^$]*)?$/.exec(target) ?? []
    const shown = `"proxy_pass ${withoutSecret(target)}"`
    if (scheme === undefined || (target.includes('@') && !URL.canParse(target))) {
      this.#into.leftOut(one, `${shown}. An upstream has fixed http:// or https:// addresses.`)
      return undefined
    }
    // Of a path that a "rewrite" has changed, nginx replaces nothing.
    const isRewritten = named(block, 'rewrite').length > 0
    const rewrite = uri === undefined ? {} : isRewritten ? undefined : rewriteOf(place, uri)
    if (rewrite === undefined && uri !== undefined) {
      const why = 'Prefixes are replaced here by whole segments.'
      if (isConfined(place, uri)) {
        this.#into.leftOut(one, `${shown}. The upstream got no other paths than those of "${uri}". ${why}`)
        return undefined
      }
      this.#into.leftOut(one, `the "${uri}" of proxy_pass. ${why} ${PATH_STAYS}`)
    }
    if (rewrite?.addPrefix !== undefined && place.kind === 'prefix' && place.path.length > 1) {
      const slash = 'where nginx sent the client to the path with a slash at the end.'
      if (place.path.endsWith('/'))
        this.#into.changedOnce(
          one,
          `${place.path.slice(0, -1)} reaches the upstream as ${rewrite.addPrefix}, ${slash}`,
        )
    }
    const address = scheme + host
    if (!this.#proxied.has(address)) {
      const addresses = (this.#pools.get(host) ?? [{ url: host, weight: 1 }]).map(one => ({
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
    return upstream === undefined ? undefined : { upstream, ...rewrite }
  }
}
