/** Header fields that nginx sets, adds and hides, and its variables as routes write them. */
import { changeOf, type FieldChange, fieldsWith, headersOf, valueText } from './fields.js'
import type { Findings } from './findings.js'
import { type Block, type Directive, named } from './nginx-text.js'
import type { RouteParts } from './routes.js'

/** The lines about fields that hold for a block: its own, or those around it. */
export interface NginxFields {
  readonly set: Block
  readonly added: Block
  readonly hidden: Block
}

export const NO_FIELDS: NginxFields = { set: [], added: [], hidden: [] }

export function fieldsOf(block: Block, outer: NginxFields): NginxFields {
  const nearest = (name: string, around: Block): Block => {
    const own = named(block, name)
    return own.length > 0 ? own : around
  }
  return {
    set: nearest('proxy_set_header', outer.set),
    added: nearest('add_header', outer.added),
    hidden: nearest('proxy_hide_header', outer.hidden),
  }
}

export const VARIABLES: Readonly<Record<string, string>> = {
  remote_addr: valueText('client.address'),
  host: valueText('host'),
  request_id: valueText('request.id'),
}

/** A text as a route writes it; undefined when it holds a variable that routes do not know. */
export function textOf(
  text: string,
  variables: Readonly<Record<string, string>> = VARIABLES,
): string | undefined {
  let isKnown = true
  const written = text.replace(/\$(?:\{(\w+)\}|(\w*))/g, (_, braced?: string, bare = '') => {
    const name = braced ?? bare
    isKnown &&= Object.hasOwn(variables, name)
    return variables[name] ?? ''
  })
  return isKnown ? written : undefined
}

/** Fields that the gateway itself sends like this. */
const AS_HERE =
  /^(host \$(http_)?host|connection (upgrade|\$connection_upgrade)?|upgrade \$http_upgrade|x-forwarded-(for \$(proxy_add_x_forwarded_for|remote_addr)|proto \$scheme|host \$(http_)?host|port \$server_port))$/i

/** True for a line that changes nothing here: the gateway does the same, or the upstream gets the client's field anyway. */
export function isAsHere({ name, words: [field = '', value = ''] }: Directive): boolean {
  if (name !== 'proxy_set_header') return false
  return AS_HERE.test(`${field} ${value}`) || value === `$http_${field.toLowerCase().replaceAll('-', '_')}`
}

/** What a route changes in place of a line; undefined when it cannot. */
export function changeIn({
  name,
  words: [field = '', value = '', always],
}: Directive): FieldChange | undefined {
  if (name === 'proxy_hide_header') return changeOf('response', 'remove', field)
  const text = textOf(value)
  if (text === undefined) return undefined
  if (name === 'proxy_set_header') return changeOf('request', text === '' ? 'remove' : 'set', field, text)
  return name === 'add_header' && always === 'always' && text !== ''
    ? changeOf('response', 'add', field, text)
    : undefined
}

/** Fields that are set or removed here as well, or whose value decides nothing about who asks. */
const HARMLESS_FIELD =
  /^(host|connection|upgrade|forwarded|x-forwarded-.*|x-real-ip|x-request-id|accept-encoding|user-agent|content-.*|range|if-.*|te|early-data|sec-websocket-.*|referer|origin)$/i

/** True for a line that no route can have, and whose field a client may choose without it. */
export const isLost = (one: Directive): boolean =>
  one.name === 'proxy_set_header' &&
  !HARMLESS_FIELD.test(one.words[0] ?? '') &&
  !isAsHere(one) &&
  changeIn(one) === undefined

/** The changes of a route that passes requests on; reports the fields of requests that clients can choose now. */
export function changesOf({ set, added, hidden }: NginxFields, into: Findings): Pick<RouteParts, 'headers'> {
  for (const one of set) if (isLost(one)) into.lostField(one, one.words[0] ?? '', 'nginx')
  const request = fieldsWith(set.filter(one => !isAsHere(one)).flatMap(one => changeIn(one) ?? []))
  return headersOf(request, responseOf([...hidden, ...added]))
}

/** The changes of a route that answers itself. */
export const changesOfAnswer = ({ added }: NginxFields): Pick<RouteParts, 'headers'> =>
  headersOf(undefined, responseOf(added))

const responseOf = (lines: Block) => fieldsWith(lines.flatMap(one => changeIn(one) ?? []))
