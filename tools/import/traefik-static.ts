/** Traefik's static configuration: entry points, what holds on all their routers, and whom they trust. */
import type { Migration } from './migration.js'
import type { Section } from './source.js'

export class EntryPoints {
  readonly #known = new Map<string, Section>()
  readonly #into: Migration
  /** True when a static configuration says whose X-Forwarded-For is trusted. */
  knowsClients = false

  constructor(into: Migration) {
    this.#into = into
  }

  read(file: Section): void {
    for (const key of Object.keys(file.node)) {
      if (key !== 'entryPoints' && key !== 'http' && key !== 'tls') this.#into.findings.notNeeded(key)
    }
    for (const [name, point] of file.section('entryPoints').members()) this.#known.set(name, point)
  }

  /** Trusts the proxies that all entry points of clients trust. */
  trust(): void {
    const open = [...this.#known].filter(([name]) => !this.isNarrow(name))
    const lists = open.map(([, point]) => point.section('forwardedHeaders'))
    for (const [, point] of open) {
      const { proxyProtocol } = point.node
      if (proxyProtocol !== undefined) {
        this.#into.lost(
          point.at('proxyProtocol'),
          'the clients’ addresses of the PROXY protocol, which is not read. All clients have the address of the proxy in front.',
        )
      }
    }
    for (const one of lists) {
      if (one.node.insecure === true) {
        this.#into.lost(
          one.at('insecure'),
          'X-Forwarded-For from anybody ("insecure"): every client could choose its address. Name your proxies under trustedProxies.',
        )
      }
    }
    const [first] = lists
    if (first === undefined) return
    this.knowsClients = true
    const text = first.texts('trustedIPs').join()
    if (lists.every(one => one.texts('trustedIPs').join() === text))
      this.#into.trust(first.texts('trustedIPs'), first.at())
    else {
      this.knowsClients = false
      this.#into.lost(
        first.at(),
        'the clients’ addresses behind trustedIPs, which differ between entry points. Name your proxies under trustedProxies.',
      )
    }
  }

  /** Middlewares of the entry points that a router is on; of all when it names none. */
  middlewaresOf(names: readonly string[]): string[] {
    const points =
      names.length === 0 ? [...this.#known.values()] : names.flatMap(name => this.#known.get(name) ?? [])
    return [...new Set(points.flatMap(point => point.section('http').texts('middlewares')))]
  }

  /** True for an entry point that only this machine or a private network can reach, or that may be one. */
  isNarrow(name: string): boolean {
    const address = this.#known.get(name)?.text('address')
    if (address === undefined) return !/^(web|websecure|web-secure|http|https)$/i.test(name)
    return /^(127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|localhost|\[::1\]|\[f[cd])/.test(address)
  }
}
