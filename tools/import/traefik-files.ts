/** The files of Traefik's configuration, read as one: entry points, services, middlewares and options of TLS. */
import type { Findings } from './findings.js'
import type { Migration } from './migration.js'
import { isPrivate } from './rules.js'
import { type ServiceTarget, servicesOf } from './traefik-services.js'
import { readYaml, type Section, type SourceFile, words } from './yaml.js'

const WANTED = { format: 'traefik', name: 'a Traefik dynamic configuration', keys: ['http', 'entryPoints'] }

/** The words that the import looks for, as the documentation writes them. */
const WORDS = new Map(
  [
    ...words(
      'http tcp udp routers services middlewares rule service priority ruleSyntax entryPoints address',
    ),
    ...words('forwardedHeaders trustedIPs insecure proxyProtocol tls options clientAuth chain allowedHosts'),
    ...words('ipAllowList ipWhiteList sourceRange loadBalancer servers url passHostHeader buffering'),
    ...words('maxRequestBodyBytes rateLimit average period burst inFlightReq amount sourceCriterion'),
    ...words('requestHeaderName requestHost ipStrategy depth excludedIPs'),
  ].map(word => [word.toLowerCase(), word]),
)
/** Members of these have names that their author chose. */
const HOLDERS = ['routers', 'services', 'middlewares', 'options', 'entryPoints']

/** The files, of which one may be the static configuration; undefined, after reporting why, when they cannot be read. */
export function readTraefik(sources: readonly SourceFile[], into: Findings): Section[] | undefined {
  for (const source of sources) refuseTemplate(source, into)
  if (into.isUnreadable) return undefined
  const read = sources.map(source => readYaml(source, WANTED, into))
  const files = read.filter(file => file !== undefined)
  if (files.length < read.length) return undefined
  for (const file of files) refuseOtherCase(file, into)
  if (into.isUnreadable) return undefined
  if (files.some(file => 'http' in file.node)) return files
  const message =
    'This is Traefik’s static configuration, without routers. Give the dynamic one, too: sluice import traefik traefik.yml dynamic.yml.'
  into.unreadable(files[0]?.at() ?? { line: 1, col: 1 }, message)
  return undefined
}

/** Traefik reads `Middlewares` as `middlewares`. Passed over, it would let through what a middleware guards. */
function refuseOtherCase(section: Section, into: Findings, areNames = false): void {
  for (const [key, member] of section.members()) {
    const word = WORDS.get(key.toLowerCase())
    if (!areNames && word !== undefined && word !== key)
      into.unreadable(section.at(key), `Traefik reads "${key}" as "${word}": write it so.`)
    refuseOtherCase(member, into, !areNames && HOLDERS.includes(key))
  }
}

/** Traefik fills in what is between braces, whatever it stands for: a middleware, or a list of routers. */
function refuseTemplate({ text, file }: SourceFile, into: Findings): void {
  const [before = '', ...others] = text.split('{{')
  if (others.length === 0) return
  const lines = before.split('\n')
  const at = { line: lines.length, col: (lines.at(-1) ?? '').length + 1, file }
  into.unreadable(at, 'Templates ("{{") are not filled in. Give the file with what they stand for.')
}

/** What routers refer to by name. */
export class TraefikFiles {
  readonly entryPoints: EntryPoints
  readonly routers: (readonly [name: string, router: Section])[] = []
  readonly middlewares = new Map<string, Section>()
  readonly tlsOptions = new Map<string, Section>()
  readonly services = new Map<string, ServiceTarget>()
  readonly #into: Migration

  constructor(files: readonly Section[], into: Migration) {
    this.#into = into
    this.entryPoints = new EntryPoints(into)
    for (const file of files) this.#read(file)
    this.entryPoints.trust()
  }

  #read(file: Section): void {
    if ('entryPoints' in file.node) this.entryPoints.read(file)
    else file.others(['http', 'tls', 'tcp', 'udp'], this.#into, 'Only "http" is read.')
    for (const key of ['tcp', 'udp'])
      if (key in file.node) this.#into.leftOut(file.at(key), `"${key}". Only "http" is read.`)
    const http = file.section('http')
    http.others(
      ['routers', 'services', 'middlewares', 'serversTransports'],
      this.#into,
      'The import does not read it.',
    )
    for (const [name, target] of servicesOf(http, this.#into)) this.services.set(name, target)
    for (const [name, one] of http.section('middlewares').members()) this.middlewares.set(name, one)
    for (const [name, one] of file.section('tls').section('options').members()) this.tlsOptions.set(name, one)
    this.routers.push(...http.section('routers').members())
  }
}

/** Keys of the static configuration that are read, and that have no effect here. */
const READ = /^(entryPoints|http|tls|tcp|udp)$/
const NOT_NEEDED = /^(global|log|accessLog|metrics|tracing|ping|api|providers|core|ocsp)$/
const POINT = ['address', 'forwardedHeaders', 'proxyProtocol', 'http', 'asDefault', 'observability']

/** What holds on all routers of an entry point, and whom it trusts. */
class EntryPoints {
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
    const isAnyUsual = (): boolean =>
      [...this.#known.values()].some(one => isUsual(one.text('address') ?? ''))
    return isPrivate(address) || (!isUsual(address) && isAnyUsual())
  }
}

const tlsOptionOf = (of: Section): string => of.section('tls').text('options') ?? 'default'

/** True for the ports of the web, which everybody may reach. */
const isUsual = (address: string): boolean => /:(80|443)(\/tcp)?$/.test(address)
