/**
 * Access logs: the common and combined formats of Apache and nginx, with or without the virtual host in front
 * (httpd.apache.org/docs/2.4/logs.html; nginx.org/en/docs/http/ngx_http_log_module.html), and JSON: Envoy's, and any other
 * whose fields are named by `--map`.
 */
import { didYouMean } from '../arguments.js'
import { Unusable } from '../command.js'
import { type Format, type LoggedFacts, type LoggedRequest, trafficOfRequest } from './traffic.js'

const LINE = /^([^[\]"]{1,600}) \[([^\]]{20,40})\] "((?:[^"\\]|\\.)*)" (\d{3})(?: |$)/
const REQUEST = /^([A-Z]{1,30}) (\S+)(?: HTTP\/\d(?:\.\d)?)?$/
const TIME = /^(\d{2})\/(\w{3})\/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})$/
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** @param host the host of requests whose lines name none */
export function combined(host: string | undefined): Format {
  return {
    name: 'combined',
    title: 'an access log in the common or combined format',
    facts: new Set(host === undefined ? (['client'] as const) : (['client', 'host'] as const)),
    read(line) {
      const [, who, time, request, status] = LINE.exec(line) ?? []
      if (who === undefined || time === undefined || request === undefined) return undefined
      const at = clockOf(time)
      if (at === undefined) return { trouble: 'broken', reason: `"${time}" is not a time` }
      // The virtual host, if there is one, comes before the address.
      const words = who.split(' ')
      const [client, , user] = words.slice(-3)
      const [, method = '', target = ''] = REQUEST.exec(request) ?? []
      return trafficOfRequest({
        at,
        // What is not an HTTP request was answered 400, and is refused here too.
        method: method === '' ? 'GET' : method,
        target,
        host: words.length > 3 ? words[0] : host,
        client,
        status: Number(status),
        authenticated: user !== undefined && user !== '-' ? true : undefined,
      })
    },
  }
}

function clockOf(text: string): number | undefined {
  const [, day, month, year, hours, minutes, seconds, sign, offsetHours, offsetMinutes] =
    TIME.exec(text) ?? []
  const index = MONTHS.indexOf(month ?? '')
  if (index < 0) return undefined
  const local = Date.UTC(Number(year), index, Number(day), Number(hours), Number(minutes), Number(seconds))
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60_000
  return sign === '-' ? local + offset : local - offset
}

/** The JSON fields by the part of a request that they contain. */
export type FieldNames = ReadonlyMap<string, readonly string[]>

/** The parts that fields may be mapped to; `header:NAME` as well. */
const KNOWN = [
  'time',
  'method',
  'path',
  'host',
  'client',
  'duration',
  'status',
  'project',
  'ja3',
  'ja4',
  'auth',
]
const NEEDED = ['time', 'method', 'path']

/** Envoy's usual names (envoyproxy.io, 'Access logging'), and those of its command operators. */
const ENVOY: FieldNames = new Map([
  ['time', ['start_time', 'START_TIME']],
  ['method', ['method', ':method', 'REQ(:METHOD)']],
  [
    'path',
    ['path', ':path', 'x_envoy_original_path', 'x-envoy-original-path', 'REQ(X-ENVOY-ORIGINAL-PATH?:PATH)'],
  ],
  ['host', ['authority', ':authority', 'REQ(:AUTHORITY)']],
  ['client', ['downstream_remote_address', 'DOWNSTREAM_REMOTE_ADDRESS', 'x_forwarded_for']],
  ['duration', ['duration', 'DURATION']],
  ['status', ['response_code', 'RESPONSE_CODE']],
])

/**
 * The mapping from options such as `path=req.url`; dots lead into objects.
 * @throws {Unusable} when a field is unknown, or a required one is missing
 */
export function readMapping(written: readonly string[]): FieldNames {
  const names = new Map<string, readonly string[]>()
  for (const text of written) {
    const [, field, name] = /^([^=]+)=(.+)$/.exec(text) ?? []
    if (field === undefined || name === undefined) {
      throw new Unusable(`--map is "${text}"; write it as field=name, such as path=req.url.`)
    }
    if (!KNOWN.includes(field) && !/^header:[a-z0-9-]+$/.test(field)) {
      const help = didYouMean(field, KNOWN) || ` Fields are ${KNOWN.join(', ')} and header:NAME.`
      throw new Unusable(`--map knows no field "${field}".${help}`)
    }
    names.set(field, [...(names.get(field) ?? []), name])
  }
  const missing = NEEDED.filter(field => !names.has(field))
  if (missing.length > 0) throw new Unusable(`--map must also name ${missing.join(' and ')}.`)
  return names
}

/** @param host the host of requests whose lines name none */
export function envoy(host: string | undefined): Format {
  return jsonLog('envoy', 'an access log of Envoy in JSON', ENVOY, host)
}

export function mapped(names: FieldNames, host: string | undefined): Format {
  return jsonLog('json', 'a log in JSON with the fields of --map', names, host)
}

function jsonLog(name: string, title: string, names: FieldNames, host: string | undefined): Format {
  const facts = new Set(
    [...names.keys()].filter(field => !NEEDED.includes(field) && field !== 'status') as LoggedFacts[],
  )
  if (host !== undefined) facts.add('host')
  const headers = [...names.keys()].filter(field => field.startsWith('header:'))
  return {
    name,
    title,
    facts,
    read(line) {
      const value = parse(line)
      if (value === 'broken') return { trouble: 'broken', reason: 'it is not complete JSON' }
      if (value === undefined) return undefined
      const get = (field: string) => textAt(value, names.get(field))
      const [time, method, target] = NEEDED.map(get)
      if (time === undefined || method === undefined || target === undefined) return undefined
      const at = timeOf(time)
      if (at === undefined) return { trouble: 'broken', reason: `"${time.slice(0, 40)}" is not a time` }
      const duration = numberOf(get('duration'))
      const project = get('project')
      const request: LoggedRequest = {
        at,
        method: method.toUpperCase(),
        target,
        host: get('host') ?? host,
        client: get('client')?.split(',').at(-1)?.trim(),
        durationMs: duration !== undefined && duration >= 0 ? duration : undefined,
        status: numberOf(get('status')),
        project:
          project === undefined
            ? undefined
            : { id: project, plan: undefined, environment: undefined, verified: false },
        ja3: get('ja3'),
        ja4: get('ja4'),
        authenticated: isAuthenticated(get('auth')),
        headers: headersOf(headers, get),
      }
      return trafficOfRequest(request)
    },
  }
}

function parse(line: string): object | 'broken' | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return 'broken'
  }
}

/** The first of these fields that has a value; Envoy writes `-` for none. */
function textAt(value: object, names: readonly string[] = []): string | undefined {
  for (const name of names) {
    const found = valueAt(value, name)
    if (typeof found === 'number' || typeof found === 'boolean') return String(found)
    if (typeof found === 'string' && found !== '' && found !== '-') return found
  }
  return undefined
}

function valueAt(value: object, name: string): unknown {
  if (Object.hasOwn(value, name)) return (value as Record<string, unknown>)[name]
  let at: unknown = value
  for (const key of name.split('.')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Record<string, unknown>)[key]
  }
  return at
}

/** Numbers below this are seconds: as milliseconds they would be in the distant past. */
const FEWEST_MS = 1e11

function timeOf(text: string): number | undefined {
  const number = Number(text)
  const ms = Number.isNaN(number) ? Date.parse(text) : number < FEWEST_MS ? number * 1000 : number
  return Number.isNaN(ms) ? undefined : ms
}

function numberOf(text: string | undefined): number | undefined {
  const number = Number(text)
  return text === undefined || Number.isNaN(number) ? undefined : number
}

function isAuthenticated(text: string | undefined): boolean | undefined {
  return text === undefined ? undefined : !['false', 'anonymous', '0'].includes(text)
}

function headersOf(
  fields: readonly string[],
  get: (field: string) => string | undefined,
): ReadonlyMap<string, string> | undefined {
  if (fields.length === 0) return undefined
  const headers = new Map<string, string>()
  for (const field of fields) {
    const value = get(field)
    if (value !== undefined) headers.set(field.slice('header:'.length), value)
  }
  return headers
}
