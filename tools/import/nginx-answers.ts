/** What nginx answers itself by `return`, as routes with `redirect` and `respond`. */
import { textOf, VARIABLES } from './nginx-fields.js'
import { answerOf } from './nginx-guards.js'
import { type Block, named } from './nginx-text.js'
import { type RouteParts, redirectTo } from './routes.js'

/** Directives after which not every request is answered by the `return` of the block. */
const BEFORE_RETURN = /^(rewrite|if|set|break|perl|js_|.*_by_)/

/** The answer of a block in a route; undefined where no route can say it. @param type the media type of texts there */
export function answerRoute(
  block: Block,
  type: string,
): Pick<RouteParts, 'redirect' | 'respond'> | undefined {
  const [returned] = named(block, 'return')
  if (returned === undefined || block.some(({ name }) => BEFORE_RETURN.test(name))) return undefined
  const [status, text] = answerOf(returned)
  if (/^30\d$/.test(status)) {
    const to = targetOf(text)
    return to === undefined ? undefined : redirectTo(to, Number(status))
  }
  if (!/^20[0-4]$/.test(status) || text.includes('$') || text.length > LONGEST_BODY) return undefined
  if (text === '' || status === '204') return { respond: { status: Number(status) } }
  return { respond: { status: Number(status), type: typeIn(block) ?? type, body: text } }
}

const LONGEST_BODY = 65_536

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
