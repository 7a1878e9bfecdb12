/** What nginx answers by `return`, as redirects and fixed answers of routes. */
import { compileAnswer } from '../../gateway/policy/route-answer.js'
import { routeText } from './fields.js'
import type { Migration } from './migration.js'
import { headersIn } from './nginx-fields.js'
import { answerOf } from './nginx-guards.js'
import { type NginxContext, placeIn } from './nginx-locations.js'
import type { NginxServers } from './nginx-servers.js'
import type { Block, Directive } from './nginx-text.js'
import { asLiteral, below, meet, type PlacePath } from './places.js'
import { type ImportedRoute, isWholePath } from './routes.js'
import { withoutSecret } from './upstreams.js'

const REDIRECTS = ['301', '302', '303', '307', '308']
const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html',
  json: 'application/json',
  txt: 'text/plain',
  xml: 'text/xml',
}

/** Directives that may decide before a `return` does, or change what it says. */
const DECIDING = /^(if|rewrite|set|error_page|.*_by_.*)$/

/**
 * The answer of a block to all requests of a place; undefined where there is none, or a route cannot give it to the same
 * requests.
 */
function answerIn(block: Block, place: PlacePath, type: string): ImportedRoute | undefined {
  const returned = block.find(({ name }) => name === 'return')
  if (returned === undefined || !isWholePath(place) || block.some(({ name }) => DECIDING.test(name)))
    return undefined
  const [status, text] = answerOf(returned)
  if (/^2\d\d$/.test(status)) {
    if (/\$/.test(text) || text.length > 65_536) return undefined
    const extension = /\.(\w+)$/.exec(place.path)?.[1] ?? ''
    const ofBody = text === '' ? {} : { type: TYPES[extension] ?? type, body: text }
    return isSound({ respond: { status: Number(status), ...ofBody } })
  }
  if (!REDIRECTS.includes(status)) return undefined
  if (/[{}]/.test(text.replace(/\$\{\w+\}/g, ''))) return undefined
  // The path and query stand in for a value until the others are written.
  const marked = text.replace(/\$(?:\{request_uri\}|request_uri\b)/g, '\u0001')
  const to = routeText(marked.replaceAll('\u0001', '(path)'), { host: 'host' })?.replaceAll(
    '(path)',
    '{path}',
  )
  if (to === undefined || marked.includes('(path)') || !/^(https?:\/\/[^/?#@{]|\/(?![/\\]))/.test(to))
    return undefined
  return isSound({ redirect: { to, status: Number(status) } })
}

/** The route, unless the loader would refuse it. */
function isSound(route: ImportedRoute): ImportedRoute | undefined {
  const { redirect, respond } = route
  const faults: { path: (string | number)[]; message: string }[] = []
  compileAnswer({ redirect, respond: respond && { type: '', body: '', ...respond } }, faults)
  return faults.length === 0 ? route : undefined
}

export const TO_HTTPS = 'From http to https, it is listen.redirectHttp in gateway.yaml.'

/** Opens a place whose requests are answered here as nginx does. @returns whether all of them are */
export function opensAnswer(
  block: Block,
  context: NginxContext,
  at: Directive,
  servers: NginxServers,
  into: Migration,
): boolean {
  const returned = block.find(({ name }) => name === 'return')
  if (returned === undefined) return false
  const { hosts, kind, path } = context
  const answer = answerIn(block, context, context.type)
  const isElsewhere = (host?: string): boolean =>
    answer !== undefined && !isToSelf(answer, host, context, name => servers.has(name))
  const answered = hosts.filter(isElsewhere)
  const isOpen = answered.length > 0 || (hosts.length === 0 && isElsewhere())
  const shown = withoutSecret(`"return ${returned.words.join(' ')}"`)
  if (answer === undefined) into.leftOut(returned, `${shown}. No route answers the same.`)
  else if (!isOpen || answered.length < hosts.length)
    into.elsewhere(returned, `${shown}. ${TO_HTTPS}`, 'redirect to https')
  if (answer === undefined || !isOpen) return false
  const patterns = [kind === 'exact' ? asLiteral(path) : below(path)]
  const route = { ...answer, headers: headersIn(context.fields, false, into) }
  into.open({ ...placeIn(context), hosts: answered, patterns, route }, at)
  return answered.length === hosts.length
}

/**
 * True for a redirect into the place itself by another address: what a server of http says of that of https.
 *
 * @param host of the request; absent: every host that no other server has
 */
function isToSelf(
  { redirect }: ImportedRoute,
  host: string | undefined,
  { kind, path }: PlacePath,
  hasServer: (name: string) => boolean,
): boolean {
  const [, target, rest = ''] = /^https?:\/\/(\$\{host\}|[^/{]+)(.*)$/.exec(redirect?.to ?? '') ?? []
  if (target === undefined) return false
  const name = target.replace(/:\d+$/, '').toLowerCase()
  const isOwn = target.startsWith('$') || (host === undefined ? !hasServer(name) : meet([host], [name]))
  return isOwn && (/^(?:\{path\})?$/.test(rest) || (kind === 'exact' ? rest === path : rest.startsWith(path)))
}
