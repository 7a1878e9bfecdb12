/** Header fields that nginx sets on requests, and adds to responses or hides in them. */
import { changesOf, type FieldChange, type ImportedHeaders, isChangeable, routeText } from './fields.js'
import type { Findings } from './findings.js'
import { type Block, type Directive, named } from './nginx-text.js'

/** The lines about fields that hold for a block. */
export interface NginxFields {
  readonly proxy_set_header: Block
  readonly add_header: Block
  readonly proxy_hide_header: Block
}

export const NO_FIELDS: NginxFields = { proxy_set_header: [], add_header: [], proxy_hide_header: [] }

/** Of each kind, a block's own lines or those around it. */
export function fieldsOf(block: Block, outer: NginxFields): NginxFields {
  const of = (kind: keyof NginxFields): Block => {
    const own = named(block, kind)
    return own.length > 0 ? own : outer[kind]
  }
  return {
    proxy_set_header: of('proxy_set_header'),
    add_header: of('add_header'),
    proxy_hide_header: of('proxy_hide_header'),
  }
}

/** Fields that are set or removed here as well, or whose value decides nothing about who asks. */
const HARMLESS =
  /^(host|connection|upgrade|forwarded|x-forwarded-.*|x-real-ip|x-request-id|accept-encoding|user-agent|content-.*|range|if-.*|te|early-data|sec-websocket-.*|referer|origin)$/i
const VALUES = { host: 'host', remote_addr: 'client.address', request_id: 'request.id' } as const

/** True for a field that the client sends, passed on under its own name. */
const isPassedOn = ({ words: [field = '', value = ''] }: Directive): boolean =>
  value === `$http_${field.toLowerCase().replaceAll('-', '_')}`

/** The change of a line; undefined where a route cannot say it. */
export function changeOf({ name: directive, words }: Directive): FieldChange | undefined {
  const [name = '', value = '', option] = words
  const text = routeText(value, VALUES)
  switch (directive) {
    case 'proxy_set_header':
      if (!isChangeable(name, 'request')) return undefined
      if (value === '') return { how: 'remove', name }
      if (text !== undefined) return { how: 'set', name, value: text }
      // What a client must not choose is better missing than its own.
      return HARMLESS.test(name) ? undefined : { how: 'remove', name }
    case 'add_header':
      return isChangeable(name, 'response') && option === 'always' && text !== undefined
        ? { how: 'add', name, value: text }
        : undefined
    case 'proxy_hide_header':
      return isChangeable(name, 'response') ? { how: 'remove', name } : undefined
    default:
      return undefined
  }
}

/** True for a line that another place reports, or that needs no report. */
export const isFieldRead = (one: Directive): boolean =>
  changeOf(one) !== undefined || (one.name === 'proxy_set_header' && isPassedOn(one))

/** The changes of a route; reports fields of requests whose value it cannot say. */
export function headersIn(fields: NginxFields, isForwarded: boolean, into: Findings): ImportedHeaders {
  const set = isForwarded ? fields.proxy_set_header.filter(one => !isPassedOn(one)) : []
  for (const one of set) {
    const { how } = changeOf(one) ?? {}
    const [name = '', value = ''] = one.words
    if (how === 'remove' && value !== '') {
      const why = 'Routes do not know its value, so the upstream gets none.'
      into.leftOut(one, `the field ${name} as "${value}". ${why}`)
    }
  }
  const changes = (lines: Block): FieldChange[] => lines.flatMap(one => changeOf(one) ?? [])
  const hidden = isForwarded ? changes(fields.proxy_hide_header) : []
  return {
    request: changesOf('request', changes(set)),
    response: changesOf('response', [...hidden, ...changes(fields.add_header)]),
  }
}
