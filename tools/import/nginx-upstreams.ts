/** The destinations of nginx's `proxy_pass`, by `upstream` or by address. */
import type { Migration } from './migration.js'
import type { Directive } from './nginx-text.js'
import { withoutSecret } from './without-secret.js'

/** The requests that a block is for. */
export interface Located {
  /** Host names of its server, when there are several servers. */
  readonly hosts: readonly string[]
  /** Pattern of the location; matches everything if there is none. */
  readonly pattern: string
}

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
      if (
        one.name !== 'server' ||
        address.startsWith('unix:') ||
        options.some(word => /^(backup|down)$/.test(word))
      ) {
        this.#into.leftOut(
          one,
          `"${withoutSecret([one.name, ...one.words].join(' '))}". The addresses of an upstream share the requests.`,
        )
        return []
      }
      if (options.length > 0)
        this.#into.leftOut(one, `"${options.join(' ')}". The addresses of an upstream share the requests.`)
      return [address]
    })
    this.#pools.set(name, addresses)
  }

  /** Routes the requests of a block to the destination of its `proxy_pass`. */
  pass(one: Directive, { pattern, hosts }: Located): void {
    const [target = ''] = one.words
    const [, scheme, host = '', uri] = /^(https?:\/\/)([^/$]+)(\/[^$]*)?$/.exec(target) ?? []
    if (scheme === undefined || (target.includes('@') && !URL.canParse(target))) {
      this.#into.leftOut(
        one,
        `"proxy_pass ${withoutSecret(target)}". An upstream has fixed http:// or https:// addresses.`,
      )
      return
    }
    if (uri !== undefined && !(uri === '/' && pattern === '/**')) {
      this.#into.leftOut(
        one,
        `the "${uri}" of proxy_pass. Requests reach the upstream with the path they came with.`,
      )
    }
    if (!this.#proxied.has(scheme + host)) {
      const addresses = (this.#pools.get(host) ?? [host]).map(address => scheme + address)
      this.#proxied.set(scheme + host, this.#into.upstream(host, addresses, one))
    }
    const upstream = this.#proxied.get(scheme + host)
    if (upstream === undefined) return
    if (hosts.length > 0) this.#into.changedOnce(one, 'routes go by path alone, whatever the host.')
    this.#into.route(pattern, upstream, one)
  }
}
