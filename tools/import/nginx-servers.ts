/** nginx's servers: their hosts and addresses, which of them only redirect, and which proxies name clients. */
import type { Findings } from './findings.js'
import type { Migration } from './migration.js'
import { answerOf, isRefusing, TO_HTTPS } from './nginx-guards.js'
import { type Block, type Directive, named } from './nginx-text.js'
import { isRouteHost, isWildcard, meet } from './places.js'
import { isPrivate } from './rules.js'

/** The hosts of a server. */
interface ServerNames {
  /** Names, and wildcards such as `*.acme.test`. */
  readonly hosts: readonly string[]
  /** Other patterns, which routes cannot have. */
  readonly patterns: readonly string[]
}

const HOST = /^[a-z0-9][a-z0-9.-]*$/
const isHost = (word: string): boolean => HOST.test(word) || (isWildcard(word) && isRouteHost(word))

export function namesOf(server: Block): ServerNames {
  const words = wordsOf(server, 'server_name').filter(word => word !== '_' && word !== '')
  const hosts = words.flatMap(hostsOfName).filter(isHost)
  return {
    hosts: [...new Set(hosts.map(host => host.replace(/\.$/, '')))],
    patterns: words.filter(word => !hostsOfName(word).every(isHost)),
  }
}

/** The hosts of a name in lower case: `.acme.test` stands for `acme.test` and all below it. */
const hostsOfName = (name: string): string[] =>
  (name.startsWith('.') ? [name.slice(1), `*${name}`] : [name]).map(host => host.toLowerCase())

/** True for a server without a name, which takes the hosts that no other server has. */
export function isNameless(server: Block): boolean {
  const { hosts, patterns } = namesOf(server)
  return hosts.length === 0 && patterns.length === 0
}

const isRedirect = ({ name, words }: Directive): boolean =>
  name === 'return' && /^(30\d|https?:.*)$/.test(words[0] ?? '')

/** True for a server that answers every request by its own `return`, whatever its locations say. */
export const answersAll = (server: Block): boolean =>
  server.some(one => one.name === 'return' && !isRefusing(one))

/** True for a server that does nothing but send clients elsewhere, such as from http to https. */
function onlyRedirects(server: Block): boolean {
  const forwards = (block: Block): boolean =>
    block.some(one => one.name === 'proxy_pass' || forwards(one.block ?? []))
  return server.some(isRedirect) || (server.some(({ block }) => block?.some(isRedirect)) && !forwards(server))
}

/** True when one of its redirects leads to https: its other requests go there, too. */
function leadsToHttps(server: Block): boolean {
  const all = [server, ...server.map(({ block = [] }) => block)].flatMap(block => block.filter(isRedirect))
  return all.some(one => TO_HTTPS.test(answerOf(one)[1]))
}

/** The servers of a file, compared with each other. */
export class NginxServers {
  /** True when requests for hosts that no server has reach an upstream. */
  readonly isAnyNameless: boolean
  readonly #defaults: ReadonlySet<Block>
  readonly #isAnyWide: boolean
  readonly #isAnyUsual: boolean
  readonly #all: readonly Block[]

  constructor(servers: readonly Block[]) {
    this.isAnyNameless = servers.some(isNameless)
    this.#all = servers
    this.#defaults = defaultsAmong(servers)
    this.#isAnyWide = servers.some(one => narrowListen(one) === undefined)
    this.#isAnyUsual = servers.some(one => otherPort(one) === undefined)
  }

  isDefault(server: Block): boolean {
    return this.#defaults.has(server)
  }

  /**
   * Why a server that only redirects has no route: it sends to https, or another server has its hosts at another address.
   * Undefined for other servers.
   */
  onlyRedirects(server: Block): 'to https' | 'beside another' | undefined {
    if (!onlyRedirects(server)) return undefined
    if (leadsToHttps(server)) return 'to https'
    const { hosts } = namesOf(server)
    const isBeside = (other: Block): boolean =>
      hosts.length === 0 ? isNameless(other) : meet(hosts, namesOf(other).hosts) && !isNameless(other)
    const others = this.#all.filter(other => other !== server && !onlyRedirects(other))
    return others.some(isBeside) ? 'beside another' : undefined
  }

  /** The `listen` by which fewer can reach a server than the others, if there is such a one. */
  apart(server: Block): Directive | undefined {
    const narrow = this.#isAnyWide ? narrowListen(server) : undefined
    return narrow ?? (this.#isAnyUsual ? otherPort(server) : undefined)
  }
}

/** The first `listen` of a server of which all are so. */
function listenOfAll(server: Block, isSo: (listen: Directive) => boolean): Directive | undefined {
  const listens = named(server, 'listen')
  return listens.every(isSo) ? listens[0] : undefined
}

const narrowListen = (server: Block): Directive | undefined =>
  listenOfAll(server, ({ words: [address = ''] }) => isPrivate(address))

/** The `listen` of a server that is on other ports than 80 and 443, which may be reachable by fewer. */
const otherPort = (server: Block): Directive | undefined =>
  listenOfAll(server, one => !/^(80|443)$/.test(/(?:^|:)(\d+)$/.exec(addressOf(one))?.[1] ?? '80'))

const addressOf = ({ words: [address = ''] }: Directive): string => address.replace(/^(\*|0\.0\.0\.0):/, '')

/** The addresses of a server, with what is said of each. */
function listensOf(server: Block): (readonly [address: string, words: readonly string[]])[] {
  const listens = named(server, 'listen').map(one => [addressOf(one), one.words] as const)
  return listens.length > 0 ? listens : [['80', []]]
}

/** The servers that take the requests whose host no server has: on one of their addresses at least. */
export function defaultsAmong(servers: readonly Block[]): ReadonlySet<Block> {
  const chosen = new Map<string, { readonly server: Block; readonly isMarked: boolean }>()
  for (const server of servers) {
    for (const [address, words] of listensOf(server)) {
      const isMarked = words.some(word => /^default(_server)?$/.test(word))
      const present = chosen.get(address)
      if (present === undefined || (isMarked && !present.isMarked)) chosen.set(address, { server, isMarked })
    }
  }
  return new Set([...chosen.values()].map(({ server }) => server))
}

/** The `http` block in which each server has only names that no earlier server of its addresses has. */
export function withoutRepeated(http: Block, into: Findings): Directive[] {
  const taken = new Set<string>()
  return http.map(one => {
    if (one.name !== 'server') return one
    const block = one.block ?? []
    const names = wordsOf(block, 'server_name')
    const addresses = listensOf(block).map(([address]) => address)
    const keysAt = (address: string, name: string): string[] =>
      hostsOfName(name).map(host => `${address} ${host}`)
    const isTakenAt = (address: string, name: string): boolean =>
      keysAt(address, name).some(key => taken.has(key))
    const passedOver = new Set(names.filter(name => addresses.every(address => isTakenAt(address, name))))
    for (const address of addresses)
      for (const key of names.flatMap(name => keysAt(address, name))) taken.add(key)
    passedOver.delete('_')
    if (passedOver.size === 0) return one
    for (const name of passedOver)
      into.leftOut(one, `the name "${name}" of this server. nginx takes an earlier server of that name.`)
    const own = (of: Directive): Directive =>
      of.name === 'server_name' ? { ...of, words: of.words.filter(word => !passedOver.has(word)) } : of
    return { ...one, block: block.map(own) }
  })
}

/** Trusts the proxies that nginx trusted with clients' addresses. @returns false when those would not be known any more */
export function importRealIp(http: Block, into: Migration): boolean {
  const servers = named(http, 'server').map(({ block = [] }) => block)
  const everywhere = named(http, 'set_real_ip_from')
  const effective = servers.map(server => {
    const own = named(server, 'set_real_ip_from')
    return own.length > 0 ? own : everywhere
  })
  const [lines = everywhere] = effective
  const textOf = (some: Block): string => some.map(({ words }) => words[0]).join()
  const isShared = effective.every(some => textOf(some) === textOf(lines))
  const all = [...new Set([...everywhere, ...effective.flat()])]
  const [first] = all
  const listens = servers.flatMap(server => named(server, 'listen'))
  const proxied = listens.find(({ words }) => words.includes('proxy_protocol'))
  if (proxied !== undefined) {
    into.lostProxyProtocol(proxied)
    return false
  }
  if (first === undefined) return true
  const blocks = [http, ...servers]
  const headers = blocks.flatMap(block => named(block, 'real_ip_header')).map(({ words }) => words[0] ?? '')
  const isForwarded = headers.length > 0 && headers.every(header => /^x-forwarded-for$/i.test(header))
  if (!isForwarded || !isShared) {
    const names = all.slice(0, 5).map(({ words }) => words[0])
    into.lostClients(first, names.join(', '), isForwarded ? undefined : headers[0] || 'X-Real-IP')
    return false
  }
  for (const one of lines) into.trust([one.words[0] ?? ''], one)
  if (!blocks.some(block => wordsOf(block, 'real_ip_recursive').includes('on'))) {
    into.changed(
      first,
      'all trusted proxies at the end of X-Forwarded-For are passed over, as with "real_ip_recursive on".',
    )
  }
  return true
}

const wordsOf = (block: Block, name: string): string[] => named(block, name).flatMap(({ words }) => words)
