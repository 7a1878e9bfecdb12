/** The files of Traefik's configuration, read as one: words, templates, services, middlewares and options of TLS. */
import type { Findings } from './findings.js'
import type { Migration } from './migration.js'
import { readYaml, type Section, type SourceFile, words } from './source.js'
import { EntryPoints } from './traefik-entry-points.js'

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

/** The name without the provider of these files: `limit@file` is `limit`. What others provide is not in the files. */
export const plain = (name: string): string => name.replace(/(?<=.)@file$/, '')

/** What routers refer to by name. */
export class TraefikFiles {
  readonly entryPoints: EntryPoints
  readonly routers: (readonly [name: string, router: Section])[] = []
  readonly middlewares = new Map<string, Section>()
  readonly tlsOptions = new Map<string, Section>()
  /** The upstream of each service that has one. */
  readonly services = new Map<string, string>()
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
    http.others(['routers', 'services', 'middlewares'], this.#into, 'The import does not read it.')
    for (const [name, service] of http.section('services').members()) this.#service(name, service)
    for (const [name, one] of http.section('middlewares').members()) this.middlewares.set(name, one)
    for (const [name, one] of file.section('tls').section('options').members()) this.tlsOptions.set(name, one)
    this.routers.push(...http.section('routers').members())
  }

  /** Adds the upstream of a service, and reports what of it has no counterpart. */
  #service(name: string, service: Section): void {
    service.others(['loadBalancer'], this.#into, 'An upstream has only addresses, which share the requests.')
    const balancer = service.section('loadBalancer')
    const addresses = 'An upstream has addresses that share the requests.'
    balancer.others(['servers', 'passHostHeader'], this.#into, addresses)
    if (balancer.node.passHostHeader === false)
      this.#into.leftOut(balancer.at('passHostHeader'), 'another Host: it is passed on.')
    const servers = balancer.list('servers')
    for (const one of servers)
      one.others(['url', 'preservePath'], this.#into, 'The addresses of an upstream share the requests.')
    const prefixed = servers.find(one => one.node.preservePath === true && hasPath(one))
    if (prefixed !== undefined) {
      const why = 'It gets no paths but those below that of its address, and paths are not rewritten here.'
      this.#into.leftOut(prefixed.at(), `the service "${name}". ${why}`)
      return
    }
    if (servers.length === 0) return
    const urls = servers.map(one => one.text('url') ?? '')
    const upstream = this.#into.upstreams.add(name, urls, service.at())
    if (upstream !== undefined) this.services.set(name, upstream)
  }
}

/** Traefik passes over the path of an address, unless `preservePath` is set. */
function hasPath(server: Section): boolean {
  const url = server.text('url') ?? ''
  return URL.canParse(url) && new URL(url).pathname !== '/'
}
