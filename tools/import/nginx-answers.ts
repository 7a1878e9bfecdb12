/** What nginx answers itself by `return`, as routes with `redirect` and `respond`. */
import type { Migration } from './migration.js'
import { changesOfAnswer, textOf, VARIABLES } from './nginx-fields.js'
import { answerOf } from './nginx-guards.js'
import { divert, type NginxContext, onHosts, placeIn } from './nginx-locations.js'
import { type Block, type Directive, named } from './nginx-text.js'
import { isPartOfSegments } from './places.js'
import { answering, type RouteParts } from './routes.js'

/** Directives after which not every request is answered by the `return` of the block. */
const BEFORE_RETURN = /^(rewrite|if|set|break|perl|js_|.*_by_)/

/**
 * Gives the place of a block with a `return` its route, and keeps other routes from the paths that nginx answered besides: a
 * route takes whole segments. @param answered in words
 */
export function answerIn(
  block: Block,
  context: NginxContext,
  { pattern, answered, at }: { readonly pattern: string; readonly answered: string; readonly at: Directive },
  into: Migration,
): void {
  const place = placeIn(context)
  const answer = answerRoute(block, context.type)
  const route = answer && { ...answer, ...changesOfAnswer(context.fields) }
  const isOpen = route && onHosts(place).every(one => into.open({ ...one, patterns: [pattern], route }, at))
  if (!isOpen || isPartOfSegments(place)) divert(place, answered, at, into)
}

/** The answer of a block in a route; undefined where no route can say it. @param type the media type of texts there */
function answerRoute(block: Block, type: string): Pick<RouteParts, 'redirect' | 'respond'> | undefined {
  const [returned] = named(block, 'return')
  if (returned === undefined || block.some(({ name }) => BEFORE_RETURN.test(name))) return undefined
  const [status, text] = answerOf(returned)
  if (/^30\d$/.test(status)) {
    const to = targetOf(text)
    return to === undefined ? undefined : answering({ redirect: { to, status: Number(status) } })
  }
  if (!/^20[0-4]$/.test(status) || text.includes('$')) return undefined
  const content = text === '' || status === '204' ? {} : { type: typeIn(block) ?? type, body: text }
  return answering({ respond: { status: Number(status), ...content } })
}

/** The media type that a field names, which nginx sends behind its own. */
const typeIn = (block: Block): string | undefined =>
  named(block, 'add_header').find(({ words: [name = ''] }) => /^content-type$/i.test(name))?.words[1]

/** The server itself, whose address a path needs not repeat. */
const OWN_ADDRESS = /^\$scheme:\/\/\$(?:host|http_host|server_name)(?::\$server_port)?(?=\/)/

function targetOf(text: string): string | undefined {
  const target = text.replace(OWN_ADDRESS, '')
  if (/[{}]/.test(target)) return undefined
  const whole = target.replace('$uri$is_args$args', '$request_uri')
  return textOf(whole, { ...VARIABLES, request_uri: '{path}' })
}
