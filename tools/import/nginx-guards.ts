/**
 * Requests of nginx that reach no upstream: what refuses them (addresses, credentials, certificates), and what answers
 * them or sends them elsewhere. Paths of such places must not fall to the route of another one, whose upstream would get
 * requests that nginx never sent there.
 */
import { shortened } from './findings.js'
import { isKnown } from './nginx-directives.js'
import type { Block, Directive } from './nginx-text.js'
import { isConfined, type PlacePath } from './places.js'
import { literalsOf } from './regex.js'
import { type AddressLine, deniedByAll } from './rules.js'
import { withoutSecret } from './upstreams.js'

/** How requests are guarded at some level of the file; each level inherits from the one around it. */
export interface Guards {
  /** `allow` and `deny`, of which a level has its own or those around it. */
  readonly access: Block
  /** Directives that ask for credentials, by name. */
  readonly asking: ReadonlyMap<string, Directive>
  /** What refuses whatever the rest says: `return 403`, an `if` with one, `internal`. */
  readonly refusing: Block
}

export const NO_GUARDS: Guards = { access: [], asking: new Map(), refusing: [] }

/** Directives that let only some requests through, if they are not `off`. */
const ASKING =
  /^(auth_(?!.*_(cache|status|header|set|type|claim|timeout|zone|leeway|user_file|key_file|key_request))|access_by_|(server_)?rewrite_by_(?!lua_no_postpone$)|js_access|modsecurity$|ssl_verify_client$|secure_link$|SecRulesEnabled$|app_protect_enable$|perl_access|testcookie$|ModSecurityEnabled$)/
const isAsking = (name: string): boolean => ASKING.test(name) || !isKnown(name)
const OTHER_GUARDS =
  /^(allow|deny|satisfy|internal|include$|limit_except|return|valid_referers|secure_link_|ssl_reject_handshake$|auth_\w+_(user_file|key_file|key_request)$)/

/** True for directives that this file reads, so that nobody else reports them. */
export const isGuard = (name: string): boolean => isAsking(name) || OTHER_GUARDS.test(name)

export function guardsOf(block: Block, outer: Guards): Guards {
  const access = block.filter(({ name }) => name === 'allow' || name === 'deny')
  const asking = new Map(outer.asking)
  for (const one of block) {
    const { name, words } = one
    if (!isAsking(name)) continue
    const isOff = words[0] === 'off' || (name === 'ssl_verify_client' && words[0] !== 'on')
    if (isOff) asking.delete(name)
    else asking.set(name, one)
  }
  const refusing = [...outer.refusing, ...block.filter(isRefusing)]
  return { access: access.length > 0 ? access : outer.access, asking, refusing }
}

/** True for a directive that refuses some requests, or all. */
export function isRefusing(one: Directive): boolean {
  const { name, words, block = [] } = one
  switch (name) {
    case 'internal':
    case 'include': // Nobody knows what is in a file that cannot be read.
      return true
    case 'ssl_reject_handshake':
      return words[0] === 'on'
    case 'return':
      return /^[45]\d\d$/.test(words[0] ?? '')
    case 'if':
      if (isSendingAway(one)) return true
      return block.some(inner => isRefusing(inner) || inner.name === 'deny' || isAsking(inner.name))
    default:
      return name === 'limit_except' && block.length > 0
  }
}

/** How a place is guarded, in words, and where that is written; undefined when anybody may enter. */
export function guardIn({ access, asking, refusing }: Guards): { what: string; at: Directive } | undefined {
  const refused = access.find(({ name }) => name === 'deny')
  const at = refused ?? refusing[0] ?? [...asking.values()][0]
  if (at === undefined) return undefined
  const whats = [
    ...(refused === undefined ? [] : [accessText(access)]),
    ...[...asking.values()].map(askingText),
    ...refusing.map(refusalText),
  ]
  return { what: [...new Set(whats)].slice(0, 4).join(', '), at }
}

function askingText({ name, words }: Directive): string {
  const value = words[0] === undefined ? '' : ` "${words[0]}"`
  return `behind ${name}${value}${isKnown(name) || ASKING.test(name) ? '' : ', which is not known and may refuse requests'}`
}

function accessText(access: Block): string {
  const of = (which: string): string[] =>
    access.flatMap(({ name, words: [word = ''] }) => (name === which ? [word] : []))
  const allowed = of('allow')
  if (!of('deny').includes('all')) return `closed to ${shortened(of('deny'))}`
  return allowed.length === 0 ? 'closed to everybody' : `closed to all but ${shortened(allowed)}`
}

function refusalText(one: Directive): string {
  const { name, words } = one
  if (name === 'internal') return 'internal'
  if (name === 'include') return `with "include ${words.join(' ')}", which cannot be read`
  if (name === 'ssl_reject_handshake') return 'refused by ssl_reject_handshake'
  if (name === 'return') return `answered ${words[0]}`
  if (name === 'limit_except') return `limited to ${words.join(', ')} by limit_except`
  return `${isSendingAway(one) ? 'sent elsewhere' : 'refused'} by an "if ${words.join(' ')}"`
}

/** The networks that one address list refuses everywhere; undefined when places have different ones, or none. */
export function networksDenied(places: readonly Guards[]): string[] | undefined {
  const lists = places.map(({ access }) =>
    access.map(({ name, words: [network = ''] }): AddressLine => ({ allow: name === 'allow', network })),
  )
  if (lists[0]?.every(({ allow }) => allow)) return undefined
  // With "satisfy any", credentials would do as well.
  return places.some(({ asking }) => asking.size > 0) ? undefined : deniedByAll(lists)
}

/** Variables that say by which address a resource was asked for, not by whom. */
const OF_ADDRESS =
  /^(scheme|https?|host|http_host|server_name|server_port|http_x_forwarded_(proto|port|host|ssl)|ssl_protocol|http_cf_visitor)$/
/** The condition for preflights of CORS, which reach no upstream that another method would. */
const PREFLIGHT = /^\(? *\$\{?request_method\}? *= *["']?OPTIONS["']? *\)?$/
/** An address with the path and query that the client asked for. */
const SAME_PATH = /^(?:https?|\$\w+):\/\/[^/]+\$(?:request_uri|uri)/
/** What a server says on the port of http: its place is another one on that of https. */
export const TO_HTTPS = /^https:\/\/\$(?:host|http_host|server_name)\$(?:request_uri|uri)/
const EVERY_PATH = /^\^?\/?(?:\(?\.[*+]\)?)?\$?$/
const EVERY_REST = /^(?:\(?\.[*+]\)?)?\$?$/
const SERVING =
  /^(root|alias|index|try_files|autoindex|empty_gif|stub_status|(fastcgi|uwsgi|scgi|grpc|memcached)_pass|content_by_\w+|js_content|perl)$/

/** The status and the text or address of a `return`. */
export function answerOf({
  words: [first = '', second = ''],
}: Directive): readonly [status: string, target: string] {
  return /^\d+$/.test(first) ? [first, second] : ['302', first]
}

/** True for an `if` that sends those away who do not meet its condition, or who do. */
function isSendingAway({ name, words, block = [] }: Directive): boolean {
  if (name !== 'if') return false
  const condition = words.join(' ')
  const variables = [...condition.matchAll(/\$\{?(\w+)/g)].map(([, variable = '']) => variable)
  const isOfAddress = variables.length > 0 && variables.every(variable => OF_ADDRESS.test(variable))
  return block.some(one => {
    if (one.name === 'return') {
      const [status, target] = answerOf(one)
      const isSamePath = /^30\d$/.test(status) && SAME_PATH.test(target)
      const isOfPreflight = PREFLIGHT.test(condition) && /^2/.test(status)
      return !/^[45]/.test(status) && !(isOfAddress && isSamePath) && !isOfPreflight
    }
    // Those who meet the condition reach another upstream, such as a page that asks for a key.
    if (one.name.endsWith('_pass')) return true
    return one.name === 'rewrite' && !(isOfAddress && leavesPath(one))
  })
}

/** Where the requests of a location go that nginx does not forward; undefined when it forwards them, or may. */
export function answeredIn(block: Block): string | undefined {
  const returned = block.find(({ name }) => name === 'return')
  if (returned !== undefined) {
    const [status, target] = answerOf(returned)
    if (TO_HTTPS.test(target)) return undefined
    return /^30\d$/.test(status) ? `sent to ${withoutSecret(target)}` : `answered ${status}`
  }
  if (block.some(({ name }) => name === 'proxy_pass')) return undefined
  const served = block.find(({ name }) => SERVING.test(name))
  return `served by ${served?.name ?? 'nginx itself'}`
}

/** What a path becomes, up to the first part that depends on the request. */
const fixedPart = (text: string): string => /^[^$?]*/.exec(text)?.[0] ?? ''

/** True for a `rewrite` after which the path may be any, or is the same at another address. */
function leavesPath({ words: [, replacement = ''] }: Directive): boolean {
  if (SAME_PATH.test(replacement) || /^https?:\/\/[^/]+\/?\$1$/.test(replacement)) return true
  return /^\/?\$/.test(replacement)
}

/** The `rewrite` of a location after which all of its requests have other paths. */
export function rewriteOfAll(block: Block, { path }: PlacePath): Directive | undefined {
  return block.find(one => {
    const [expression = '', replacement = ''] = one.words
    if (one.name !== 'rewrite' || leavesPath(one)) return false
    const rest = expression.startsWith(`^${path}`) ? expression.slice(path.length + 1) : undefined
    const holds = EVERY_PATH.test(expression) || (rest !== undefined && EVERY_REST.test(rest))
    return holds && isConfined({ kind: 'prefix', path }, fixedPart(replacement))
  })
}

/** Paths that a `rewrite` takes away, and that `rewriteOfAll` does not find. */
export function rewrittenPaths(one: Directive, { kind, path }: PlacePath, isServer: boolean): PlacePath[] {
  const [expression = '', replacement = ''] = one.words
  const isOfAll = EVERY_PATH.test(expression)
  if (leavesPath(one) || (isOfAll && !isServer)) return []
  // Where nothing is known of the expression, it may match any path of the block.
  const places: PlacePath[] = isOfAll ? [{ kind, path }] : literalsOf(expression)
  return places
    .map(place => (place.path === '/' ? { kind, path } : place))
    .filter(place => isConfined(place, fixedPart(replacement)))
}
