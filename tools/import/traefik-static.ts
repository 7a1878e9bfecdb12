/** Traefik's static configuration: entry points, what holds on all their routers, and whom they trust. */
import type { Migration } from './migration.js'
import type { Section } from './source.js'

const READ = /^(entryPoints|http|tls|tcp|udp)$/
const NOT_NEEDED = /^(global|log|accessLog|metrics|tracing|ping|api|providers|core|ocsp)$/
const POINT = ['address', 'forwardedHeaders', 'proxyProtocol', 'http', 'asDefault', 'observability']

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
      if (READ.test(key)) continue
      if (NOT_NEEDED.test(key)) this.#into.findings.notNeeded(key)
      else if (key === 'certificatesResolvers')
        this.#into.elsewhere(
          file.at(key),
          '"certificatesResolvers". TLS is listen.tls in gateway.yaml: cert and key.',
        )
      else this.#into.leftOut(file.at(key), `"${key}". The import does not read it.`)
    }
    for (const [name, point] of file.section('entryPoints').members()) {
      this.#known.set(name, point)
      point.others(POINT, this.#into, 'There is one address to listen on.')
      point
        .section('http')
        .others(['middlewares', 'tls'], this.#into, 'Redirect or rewrite in front of the gateway.')
    }
  }

  /** The options of TLS on the entry points of a router, which may be on one without; none where all only redirect. */
  tlsOptionsOf(names: readonly string[]): (string | undefined)[] {
    const points = this.#pointsOf(names).map(point => point.section('http'))
    return points.flatMap(http => {
      if ('redirections' in http.node) return []
      return ['tls' in http.node ? (http.section('tls').text('options') ?? 'default') : undefined]
    })
  }

  /** True where all entry points of a router send its requests to others. */
  redirect(names: readonly string[]): boolean {
    const points = this.#pointsOf(names)
    return points.length > 0 && points.every(point => 'redirections' in point.section('http').node)
  }

  /** The entry points of a router that names them, or the default ones; none where those are all. */
  namesOf(router: Section): string[] {
    const own = router.texts('entryPoints')
    if (own.length > 0) return own
    return [...this.#known].flatMap(([name, point]) => (point.node.asDefault === true ? name : []))
  }

  #pointsOf(names: readonly string[]): Section[] {
    return names.length === 0 ? [...this.#known.values()] : names.flatMap(name => this.#known.get(name) ?? [])
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
    return [...new Set(this.#pointsOf(names).flatMap(point => point.section('http').texts('middlewares')))]
  }

  /** True for an entry point that only this machine or a private network can reach, or that may be one beside 80 and 443. */
  isNarrow(name: string): boolean {
    const address = this.#known.get(name)?.text('address')
    if (address === undefined) return !/^(web|websecure|web-secure|http|https)$/i.test(name)
    if (!isUsual(address) && [...this.#known.values()].some(one => isUsual(one.text('address') ?? '')))
      return true
    return /^(127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|localhost|\[::1\]|\[f[cd])/.test(address)
  }
}

/** True for the ports of the web, which everybody may reach. */
const isUsual = (address: string): boolean => /:(80|443)(\/tcp)?$/.test(address)
