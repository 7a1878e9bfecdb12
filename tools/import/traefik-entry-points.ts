/** Traefik's static configuration: entry points, what holds on all their routers, and whom they trust. */
import type { Migration } from './migration.js'
import { isPrivate } from './rules.js'
import type { Section } from './source.js'

const READ = /^(entryPoints|http|tls|tcp|udp)$/
const NOT_NEEDED = /^(global|log|accessLog|metrics|tracing|ping|api|providers|core|ocsp)$/
const POINT = ['address', 'forwardedHeaders', 'proxyProtocol', 'http', 'asDefault', 'observability']

export class EntryPoints {
  /** True when a static configuration says whose X-Forwarded-For is trusted. */
  knowsClients = false
  readonly #known = new Map<string, Section>()
  readonly #into: Migration

  constructor(into: Migration) {
    this.#into = into
  }

  read(file: Section): void {
    for (const key of Object.keys(file.node)) {
      if (READ.test(key)) continue
      const at = file.at(key)
      if (NOT_NEEDED.test(key)) this.#into.notNeeded(key)
      else if (key === 'certificatesResolvers')
        this.#into.elsewhere(at, `"${key}". TLS is listen.tls in gateway.yaml: cert and key.`)
      else this.#into.leftOut(at, `"${key}". The import does not read it.`)
    }
    for (const [name, point] of file.section('entryPoints').members()) {
      this.#known.set(name, point)
      point.others(POINT, this.#into, 'There is one address to listen on.')
      const rewriting = 'Redirect or rewrite in front of the gateway.'
      point.section('http').others(['middlewares', 'tls'], this.#into, rewriting)
    }
  }

  /** The entry points of a router that names them, or the default ones; none where those are all. */
  namesOf(router: Section): string[] {
    const own = router.texts('entryPoints')
    if (own.length > 0) return own
    return [...this.#known].flatMap(([name, point]) => (point.node.asDefault === true ? name : []))
  }

  /** The settings for http of entry points; of all when none are named. */
  #httpOf(names: readonly string[]): Section[] {
    const points =
      names.length === 0 ? [...this.#known.values()] : names.flatMap(name => this.#known.get(name) ?? [])
    return points.map(point => point.section('http'))
  }

  /** The options of TLS by which a router can be reached, undefined for without; none where all only redirect. */
  tlsOptionsOf(router: Section, names: readonly string[]): (string | undefined)[] {
    if ('tls' in router.node) return [tlsOptionOf(router)]
    const open = this.#httpOf(names).filter(http => !('redirections' in http.node))
    return open.map(http => ('tls' in http.node ? tlsOptionOf(http) : undefined))
  }

  /** True where all entry points of a router send its requests to others. */
  redirect(names: readonly string[]): boolean {
    const points = this.#httpOf(names)
    return points.length > 0 && points.every(http => 'redirections' in http.node)
  }

  middlewaresOf(names: readonly string[]): string[] {
    return [...new Set(this.#httpOf(names).flatMap(http => http.texts('middlewares')))]
  }

  /** Trusts the proxies that all entry points of clients trust. */
  trust(): void {
    const open = [...this.#known].flatMap(([name, point]) => (this.isNarrow(name) ? [] : point))
    for (const point of open)
      if (point.node.proxyProtocol !== undefined) this.#into.lostProxyProtocol(point.at('proxyProtocol'))
    const lists = open.map(point => point.section('forwardedHeaders'))
    const name = 'Name your proxies under trustedProxies.'
    for (const one of lists) {
      if (one.node.insecure !== true) continue
      const why = 'every client could choose its address.'
      this.#into.lost(one.at('insecure'), `X-Forwarded-For from anybody ("insecure"): ${why} ${name}`)
    }
    const [first] = lists
    if (first === undefined) return
    const trusted = first.texts('trustedIPs')
    this.knowsClients = lists.every(one => one.texts('trustedIPs').join() === trusted.join())
    if (this.knowsClients) this.#into.trust(trusted, first.at())
    else {
      const why = 'which differ between entry points.'
      this.#into.lost(first.at(), `the clients’ addresses behind trustedIPs, ${why} ${name}`)
    }
  }

  /** True for an entry point that only this machine or a private network can reach, or that may be one beside 80 and 443. */
  isNarrow(name: string): boolean {
    const address = this.#known.get(name)?.text('address')
    if (address === undefined) return !/^(web|websecure|web-secure|http|https)$/i.test(name)
    const isAnyUsual = [...this.#known.values()].some(one => isUsual(one.text('address') ?? ''))
    return (isAnyUsual && !isUsual(address)) || isPrivate(address)
  }
}

const tlsOptionOf = (of: Section): string => of.section('tls').text('options') ?? 'default'

/** True for the ports of the web, which everybody may reach. */
const isUsual = (address: string): boolean => /:(80|443)(\/tcp)?$/.test(address)
