/** nginx's servers: their hosts, where they listen, and which proxies tell clients' addresses. */
import type { Migration } from './migration.js'
import type { Directive } from './nginx-text.js'

/** The hosts of a server. */
export interface Names {
  readonly hosts: readonly string[]
  /** Names that are patterns, which routes and projects cannot have. */
  readonly patterns: readonly string[]
}

export function namesOf(server: readonly Directive[]): Names {
  const words = wordsOf(server, 'server_name').filter(word => word !== '_' && word !== '')
  const isHost = (word: string): boolean => /^[a-z0-9][a-z0-9.-]*$/i.test(word)
  const hosts = words.filter(isHost).map(word => word.toLowerCase().replace(/\.$/, ''))
  return { hosts: [...new Set(hosts)], patterns: words.filter(word => !isHost(word)) }
}

/** True for a server without a name, which takes the hosts that no other server has. */
export function isNameless(server: readonly Directive[]): boolean {
  const { hosts, patterns } = namesOf(server)
  return hosts.length === 0 && patterns.length === 0
}

/** True for a server that does nothing but send clients elsewhere, such as from http to https. */
export function onlyRedirects(server: readonly Directive[]): boolean {
  const isRedirect = ({ name, words }: Directive): boolean =>
    name === 'return' && /^30\d$/.test(words[0] ?? '')
  const forwards = (block: readonly Directive[]): boolean =>
    block.some(one => one.name === 'proxy_pass' || forwards(one.block ?? []))
  return server.some(isRedirect) || (server.some(({ block }) => block?.some(isRedirect)) && !forwards(server))
}

/** For each server, the `listen` by which fewer can reach it than the others, if there is such a one. */
export function apartAmong(
  servers: readonly (readonly Directive[])[],
): (server: readonly Directive[]) => Directive | undefined {
  const isAnyWide = servers.some(one => narrowListen(one) === undefined)
  const isAnyUsual = servers.some(one => otherPort(one) === undefined)
  return server =>
    (isAnyWide ? narrowListen(server) : undefined) ?? (isAnyUsual ? otherPort(server) : undefined)
}

/** The `listen` of a server that only this machine or a private network can reach. */
function narrowListen(server: readonly Directive[]): Directive | undefined {
  const listens = named(server, 'listen')
  const isNarrow = ({ words: [address = ''] }: Directive): boolean =>
    /^(127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|localhost\b|\[::1\]|\[f[cd]|unix:)/.test(address)
  return listens.length > 0 && listens.every(isNarrow) ? listens[0] : undefined
}

/** The `listen` of a server that is on other ports than 80 and 443, which may be reachable by fewer. */
function otherPort(server: readonly Directive[]): Directive | undefined {
  const listens = named(server, 'listen')
  const isOther = (one: Directive): boolean =>
    !/^(80|443)$/.test(/(?:^|:)(\d+)$/.exec(addressOf(one))?.[1] ?? '80')
  return listens.length > 0 && listens.every(isOther) ? listens[0] : undefined
}

const addressOf = ({ words: [address = ''] }: Directive): string => address.replace(/^(\*|0\.0\.0\.0):/, '')

/** The addresses of a server, with what is said of each. */
function listensOf(server: readonly Directive[]): (readonly [address: string, words: readonly string[]])[] {
  const listens = named(server, 'listen').map(one => [addressOf(one), one.words] as const)
  return listens.length > 0 ? listens : [['80', []]]
}

export const addressesOf = (server: readonly Directive[]): string[] =>
  listensOf(server).map(([address]) => address)

/** The servers that take the requests whose host no server has: on one of their addresses at least. */
export function defaultsAmong(servers: readonly (readonly Directive[])[]): ReadonlySet<readonly Directive[]> {
  const chosen = new Map<string, { readonly server: readonly Directive[]; readonly isMarked: boolean }>()
  for (const server of servers) {
    for (const [address, words] of listensOf(server)) {
      const isMarked = words.some(word => /^default(_server)?$/.test(word))
      const present = chosen.get(address)
      if (present === undefined || (isMarked && !present.isMarked)) chosen.set(address, { server, isMarked })
    }
  }
  return new Set([...chosen.values()].map(({ server }) => server))
}

/**
 * Trusts the proxies that nginx trusted with clients' addresses. @returns false when clients' addresses would not be
 * known any more
 */
export function importRealIp(http: readonly Directive[], into: Migration): boolean {
  const servers = http.flatMap(one => (one.name === 'server' ? [one.block ?? []] : []))
  const everywhere = named(http, 'set_real_ip_from')
  const effective = servers.map(server => {
    const own = named(server, 'set_real_ip_from')
    return own.length > 0 ? own : everywhere
  })
  const [lines = everywhere] = effective
  const textOf = (some: readonly Directive[]): string => some.map(({ words }) => words[0]).join()
  const isShared = effective.every(some => textOf(some) === textOf(lines))
  const all = [...new Set([...everywhere, ...effective.flat()])]
  const [first] = all
  const proxied = servers
    .flatMap(server => named(server, 'listen'))
    .find(({ words }) => words.includes('proxy_protocol'))
  if (proxied !== undefined) {
    into.lost(
      proxied,
      'the clients’ addresses of the PROXY protocol, which is not read. All clients have the address of the proxy in front.',
    )
    return false
  }
  if (first === undefined) return true
  const headers = [http, ...servers].flatMap(block => named(block, 'real_ip_header'))
  const header = headers[0]?.words[0] ?? 'X-Real-IP'
  const isForwarded =
    headers.length > 0 && headers.every(({ words }) => /^x-forwarded-for$/i.test(words[0] ?? ''))
  if (!isForwarded || !isShared) {
    const why = isForwarded
      ? 'The servers of this file trust different ones'
      : `They tell it in ${header}, and only X-Forwarded-For is read`
    into.lost(
      first,
      `the clients’ addresses behind ${all
        .slice(0, 5)
        .map(({ words }) => words[0])
        .join(', ')}. ${why}: let them send it, and name them under trustedProxies.`,
    )
    return false
  }
  for (const one of lines) into.trust([one.words[0] ?? ''], one)
  const isRecursive = [http, ...servers].some(block => wordsOf(block, 'real_ip_recursive').includes('on'))
  if (!isRecursive) {
    into.changed(
      first,
      'all trusted proxies at the end of X-Forwarded-For are passed over, as with "real_ip_recursive on".',
    )
  }
  return true
}

const named = (block: readonly Directive[], name: string): Directive[] =>
  block.filter(one => one.name === name)
const wordsOf = (block: readonly Directive[], name: string): string[] =>
  named(block, name).flatMap(({ words }) => words)
