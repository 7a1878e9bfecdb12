/**
 * Places of nginx whose requests reach no upstream, or reach it with another path only. Their paths must not fall to the
 * route of another place: its upstream would get requests that nginx never sent there.
 */
import type { Place } from './doors.js'
import { literalsOf } from './nginx-regex.js'
import type { Directive } from './nginx-text.js'
import { isConfined } from './paths.js'
import { withoutSecret } from './without-secret.js'

/** Variables that tell by which address a resource was asked for, not by whom. */
const OF_ADDRESS =
  /^(scheme|https?|host|http_host|server_name|server_port|http_x_forwarded_(proto|port|host|ssl)|ssl_protocol|http_cf_visitor)$/
/** The condition for preflights of CORS, which reach no upstream that another method would. */
const PREFLIGHT = /^\(? *\$\{?request_method\}? *= *["']?OPTIONS["']? *\)?$/
/** An address with the path and query that the client asked for. */
const SAME_PATH = /^(?:https?|\$\w+):\/\/[^/]+\$(?:request_uri|uri)/
/** What a server says on the port of http: its place is another one on that of https. */
const TO_HTTPS = /^https:\/\/\$(?:host|http_host|server_name)\$(?:request_uri|uri)/
const EVERY_PATH = /^\^?\/?(?:\(?\.[*+]\)?)?\$?$/
const EVERY_REST = /^(?:\(?\.[*+]\)?)?\$?$/
const SERVING =
  /^(root|alias|index|try_files|autoindex|empty_gif|stub_status|(fastcgi|uwsgi|scgi|grpc|memcached)_pass|content_by_\w+|js_content|perl)$/

/** The status and the address of a `return`. */
function answerOf({
  words: [first = '', second = ''],
}: Directive): readonly [status: string, target: string] {
  return /^\d+$/.test(first) ? [first, second] : ['302', first]
}

/** True for a redirect to the same path at another address, such as from http to https. */
function isSamePath(one: Directive): boolean {
  const [status, target] = answerOf(one)
  return /^30\d$/.test(status) && SAME_PATH.test(target)
}

/** True for an `if` that sends those away who do not meet its condition, or who do. */
export function isSendingAway({ name, words, block = [] }: Directive): boolean {
  if (name !== 'if') return false
  const about = [...words.join(' ').matchAll(/\$\{?(\w+)/g)].map(([, variable]) => variable ?? '')
  const isOfAddress = about.length > 0 && about.every(variable => OF_ADDRESS.test(variable))
  const isOfPreflight = PREFLIGHT.test(words.join(' '))
  return block.some(one => {
    if (one.name === 'return') {
      const [status] = answerOf(one)
      const isRefused = /^[45]/.test(status)
      return !isRefused && !(isOfAddress && isSamePath(one)) && !(isOfPreflight && /^2/.test(status))
    }
    // Those who meet the condition reach another upstream, such as a page that asks for a key.
    if (one.name.endsWith('_pass')) return true
    return one.name === 'rewrite' && !(isOfAddress && isWithPath(one))
  })
}

/** Where the requests of a location go that nginx does not forward; undefined when it forwards them, or may. */
export function answeredIn(block: readonly Directive[]): string | undefined {
  const returned = block.find(({ name }) => name === 'return')
  if (returned !== undefined && TO_HTTPS.test(answerOf(returned)[1])) return undefined
  if (returned !== undefined) {
    const [status, target] = answerOf(returned)
    return /^30\d$/.test(status) ? `sent to ${withoutSecret(target)}` : `answered ${status}`
  }
  if (block.some(({ name }) => name === 'proxy_pass')) return undefined
  const served = block.find(({ name }) => SERVING.test(name))
  return served === undefined ? 'served by nginx itself' : `served by ${served.name}`
}

/** What a path becomes, up to the first part that depends on the request. */
const fixedPart = (text: string): string => /^[^$?]*/.exec(text)?.[0] ?? ''

/** The `rewrite` of a location after which all of its requests have other paths. */
export function rewriteOfAll(
  block: readonly Directive[],
  place: Pick<Place, 'kind' | 'path'>,
): Directive | undefined {
  return block.find(one => {
    const [expression = '', replacement = ''] = one.words
    if (one.name !== 'rewrite' || isWithPath(one)) return false
    const rest = expression.startsWith(`^${place.path}`) ? expression.slice(place.path.length + 1) : undefined
    const holds = EVERY_PATH.test(expression) || (rest !== undefined && EVERY_REST.test(rest))
    return holds && isConfined({ kind: 'prefix', path: place.path }, fixedPart(replacement))
  })
}

/** Paths that a `rewrite` takes away, and that `rewriteOfAll` does not tell. */
export function rewrittenPaths(
  one: Directive,
  outer: Pick<Place, 'kind' | 'path'>,
  isServer: boolean,
): Pick<Place, 'kind' | 'path'>[] {
  const [expression = '', replacement = ''] = one.words
  const isOfAll = EVERY_PATH.test(expression)
  if (isWithPath(one) || (isOfAll && !isServer)) return []
  const target = fixedPart(replacement)
  // Where nothing is known of the expression, it may match any path of the block.
  const { kind, path } = outer
  const places = isOfAll ? [{ kind, path }] : literalsOf(expression)
  return places
    .map(place => (place.path === '/' ? { kind, path } : place))
    .filter(place => isConfined(place, target))
}

/** True for a `rewrite` after which the path may be any, or is the same at another address. */
function isWithPath({ words: [, replacement = ''] }: Directive): boolean {
  if (SAME_PATH.test(replacement) || /^https?:\/\/[^/]+\/?\$1$/.test(replacement)) return true
  return /^\/?\$/.test(replacement)
}
