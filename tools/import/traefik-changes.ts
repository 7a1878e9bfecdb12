/** What Traefik's middlewares change on the way: paths and fields, and where they send clients. */
import { changeOf, fieldsWith, headersOf, isPlainText } from './fields.js'
import type { Findings } from './findings.js'
import type { MatchedPlace } from './places.js'
import { literalsOf } from './regex.js'
import { answering, type Rewrite, type RouteParts, rewriteOf } from './routes.js'
import { NO_REWRITE } from './traefik-middlewares.js'
import type { Section } from './yaml.js'

/** Where requests go that an upstream does not get with a path of their own; undefined when it does. */
export function elsewhereOf(middleware: Section | undefined): string | undefined {
  for (const [kind, settings] of middleware?.members() ?? []) {
    const target = settings.text('path') ?? settings.text('replacement') ?? ''
    const isAny = /^\$|^$|^\/\$/.test(target)
    if (kind === 'replacePath' || (kind === 'replacePathRegex' && !isAny)) return `sent on as ${target}`
  }
  return undefined
}

const kindsOf = (middlewares: readonly (Section | undefined)[]): [string, Section][] =>
  middlewares.flatMap(one => one?.members() ?? [])

/** What is put before the paths of requests, in words; undefined when nothing is. */
export function basedOn(middlewares: readonly (Section | undefined)[], base: string): string | undefined {
  const added = kindsOf(middlewares).flatMap(([kind, one]) =>
    kind === 'addPrefix' ? one.text('prefix') : [],
  )
  const [prefix] = base === '' ? added : [base]
  return prefix === undefined ? undefined : `sent on below ${prefix}`
}

/** Reports that paths keep a prefix which Traefik took away. */
export function reportStripped(middlewares: readonly (Section | undefined)[], into: Findings): void {
  for (const [kind, one] of kindsOf(middlewares)) {
    const at = one.at()
    if (kind === 'stripPrefix')
      into.leftOut(at, `"${kind}". ${NO_REWRITE}.`, `strip ${JSON.stringify(at.path)}`)
  }
}

/** Reports fields that a middleware sets, and that a client may set where nobody does. */
export function reportFields(middleware: Section | undefined, into: Findings): void {
  if (middleware === undefined) return
  if ('passTLSClientCert' in middleware.node) {
    into.lost(
      middleware.at('passTLSClientCert'),
      'the fields X-Forwarded-Tls-Client-Cert and X-Forwarded-Tls-Client-Cert-Info, which Traefik sets or removes. The upstream gets what the client sends in them, and must not believe it.',
      'field of certificates',
    )
  }
  for (const one of fieldChanges(middleware, 'Request')) {
    const isHarmless = /^(host|x-forwarded-.*|x-real-ip)$/i.test(one.name)
    if (one.change === undefined && !isHarmless) into.lostField(one.at, one.name, 'Traefik')
    else if (one.change === undefined)
      into.leftOut(one.at, `the field ${one.name}. The gateway sends its own.`)
  }
  for (const one of fieldChanges(middleware, 'Response'))
    if (one.change === undefined) into.leftOut(one.at, `the field ${one.name}. A route cannot set it.`)
}

/** The fields that a middleware changes, with the change if a route can make it. */
function fieldChanges(middleware: Section | undefined, of: 'Request' | 'Response') {
  const fields = middleware?.section('headers').section(`custom${of}Headers`)
  if (fields === undefined) return []
  return Object.keys(fields.node).map(name => {
    const value = String(fields.node[name] ?? '')
    const side = of === 'Request' ? 'request' : 'response'
    const change = isPlainText(value)
      ? changeOf(side, value === '' ? 'remove' : 'set', name, value)
      : undefined
    return { at: fields.at(name), name, change }
  })
}

/** The changes of a router's middlewares. The last one is the first to see a response. */
export function changesOf(middlewares: readonly (Section | undefined)[]): Pick<RouteParts, 'headers'> {
  const of = (which: 'Request' | 'Response', some: readonly (Section | undefined)[]) =>
    fieldsWith(some.flatMap(one => fieldChanges(one, which).flatMap(({ change }) => change ?? [])))
  return headersOf(of('Request', middlewares), of('Response', [...middlewares].reverse()))
}

/** How middlewares and the address of a service change the paths of a place; undefined when no route can. */
export function rewriteIn(
  middlewares: readonly (Section | undefined)[],
  { path }: MatchedPlace,
  base: string,
): Rewrite | undefined {
  let [rest, added, stripped] = [path.replace(/\/$/, ''), '', '']
  for (const [kind, settings] of kindsOf(middlewares)) {
    if (kind === 'replacePathRegex' || kind === 'stripPrefixRegex') return undefined
    if (kind === 'addPrefix') added = `${settings.text('prefix') ?? ''}${added}`
    if (kind !== 'stripPrefix') continue
    const prefixes = settings.texts('prefixes').map(one => one.replace(/\/$/, ''))
    // One that only some of the paths begin with makes others of them than the rest.
    const first = prefixes.find(one => `${rest}/`.startsWith(one) || one.startsWith(rest))
    if (first === undefined) continue
    if (added !== '' || !`${rest}/`.startsWith(`${first}/`)) return undefined
    rest = rest.slice(first.length)
    stripped += first
  }
  return rewriteOf({ kind: 'prefix', path: `${stripped}/` }, `${base}${added}/`)
}

/** Where a middleware redirects. */
export interface TraefikRedirect {
  /** In words. */
  readonly to: string
  /** True for one to https, whose paths are those of the routers of https, which may guard them. */
  readonly isToHttps: boolean
  /** Set where a route can say the same. */
  readonly route?: Pick<RouteParts, 'redirect'> | undefined
}

/** A redirect to another host or scheme alone, with the path that was asked for. */
const SAME_PATH = /^(?:https?|\$\{?\w+\}?):\/\/(?:[^/]+\/?)?\$\{?\w+\}?$/

/** Where middlewares redirect requests for a host. @param isTls true where all of them came by https */
export function redirectOf(
  middlewares: readonly (Section | undefined)[],
  isTls: boolean,
  host: string | undefined,
): TraefikRedirect | undefined {
  for (const [kind, settings] of kindsOf(middlewares)) {
    // Requests that came by https are not redirected there.
    if (kind === 'redirectScheme' && !isTls)
      return { to: settings.text('scheme') ?? 'https', isToHttps: true }
    if (kind !== 'redirectRegex' || isOfOthers(settings.text('regex') ?? '', host)) continue
    const to = settings.text('replacement') ?? ''
    const plain = plainTarget(settings.text('regex') ?? '', to, host)
    const isElsewhere = plain !== undefined && /^https?:\/\/([^/{:]+)/.exec(plain)?.[1] !== host
    // Traefik redirects GET by 301 or 302, and other methods by statuses that keep them.
    const route = isElsewhere
      ? answering({ redirect: { to: plain, status: settings.node.permanent === true ? 308 : 307 } })
      : undefined
    return { to, isToHttps: route === undefined && !isTls && SAME_PATH.test(to), route }
  }
  return undefined
}

/** An expression of whole addresses: a text, and whatever follows as the only group. */
const WHOLE_ADDRESS = /^\^https\?:\/\/((?:[\w/-]|\\\.)*)\(\.\*\)\$?$/

/** The target of a redirect of every path of a host, as a route has it; undefined when it is not known. */
function plainTarget(expression: string, replacement: string, host = ''): string | undefined {
  if (/[{}]/.test(replacement.replace(/\$\{1\}/g, ''))) return undefined
  if (/^(\^?\.\*\$?)$/.test(expression)) return replacement.includes('$') ? undefined : replacement
  const before = WHOLE_ADDRESS.exec(expression)?.[1]?.replaceAll('\\.', '.')
  if (host === '' || before === undefined || !`${host}/`.startsWith(before)) return undefined
  const rest = `${`${host}/`.slice(before.length)}\0`
  const target = replacement.replace(/\$(?:\{1\}|1\b)/g, () => rest).replaceAll('/\0', '{path}')
  return /[\0$]/.test(target) ? undefined : target
}

/** True for an expression of addresses of other hosts alone, such as `^https://www\.(.*)`. */
function isOfOthers(expression: string, host: string | undefined): boolean {
  if (host === undefined) return false
  return literalsOf(expression.replace(/^\^https?\??/, '')).every(({ path }) => {
    const [, rest] = path.split('://')
    return rest !== undefined && !rest.startsWith(host) && !`${host}/`.startsWith(rest)
  })
}
