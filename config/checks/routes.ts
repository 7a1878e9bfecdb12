/** Checks of routes that a schema cannot express. Pure. */
import { listed, type Path, unknownName } from '../problem.js'
import type { Gateway } from '../schema/gateway.js'
import type { FileFault, Readable } from '../types.js'
import { isFieldOfGateway, lettersOf } from '../words/field-names.js'

type Route = Gateway['routes'][number]
type Changes = NonNullable<NonNullable<Route['headers']>['request']>

/** A fault at a place within a route. */
interface RouteFault {
  readonly path: Path
  readonly message: string
  readonly atKey?: boolean
}

export function checkRoutes({ gateway, gatewayFile: file }: Readable): FileFault[] {
  if (gateway === undefined) return []
  const upstreams = new Set(Object.keys(gateway.upstreams))
  return gateway.routes.flatMap((route, i) =>
    [
      ...whereFaults(route),
      ...unknownUpstreams(route, upstreams),
      ...splitFaults(route),
      ...headerFaults(route),
      ...corsFaults(route),
    ].map(({ path, ...fault }) => ({
      file,
      path: ['routes', i, ...path],
      ...fault,
    })),
  )
}

/** Where its requests go is said once. */
const WHERE = ['upstream', 'split', 'redirect', 'respond'] as const
/** Keys about what is forwarded. */
const FORWARDING = ['stripPrefix', 'addPrefix', 'timeouts', 'maxBody'] as const

function whereFaults(route: Route): RouteFault[] {
  const written = WHERE.filter(key => route[key] !== undefined)
  if (written.length !== 1) {
    const has = written.length === 0 ? 'none of them' : listed(written, 'and')
    const path = written.length === 0 ? [] : [written[1] as string]
    const message = `A route has exactly one of ${listed(WHERE, 'and')}; this one has ${has}.`
    return [{ path, atKey: written.length > 0, message }]
  }
  if (route.redirect === undefined && route.respond === undefined) return []
  const message = 'The gateway answers this route itself, so nothing is forwarded. Remove the key.'
  const keys = FORWARDING.filter(key => route[key] !== undefined).map((key): Path => [key])
  const fields: Path[] = route.headers?.request === undefined ? [] : [['headers', 'request']]
  return [...keys, ...fields].map(path => ({ path, atKey: true, message }))
}

function unknownUpstreams({ upstream, split = [] }: Route, known: ReadonlySet<string>): RouteFault[] {
  const named: { readonly name: string; readonly path: Path }[] = split.map((part, i) => ({
    name: part.upstream,
    path: ['split', i, 'upstream'],
  }))
  if (upstream !== undefined) named.push({ name: upstream, path: ['upstream'] })
  return named
    .filter(({ name }) => !known.has(name))
    .map(({ name, path }) => ({ path, message: unknownName('upstream', name, known) }))
}

/** Shares are numbers with at most three decimals. */
const CRUMB = 1e-6

function splitFaults({ split }: Route): RouteFault[] {
  if (split === undefined) return []
  const names = split.map(({ upstream }) => upstream)
  const faults = names.flatMap((name, i): RouteFault[] =>
    names.indexOf(name) === i
      ? []
      : [
          {
            path: ['split', i, 'upstream'],
            message: `"${name}" is in this split already. Add up its shares.`,
          },
        ],
  )
  const sum = split.reduce((total, { share }) => total + share, 0)
  if (Math.abs(sum - 100) > CRUMB) {
    const message = `The shares add up to ${Number(sum.toFixed(3))}%, and must add up to 100%.`
    faults.push({ path: ['split'], message })
  }
  return faults
}

function headerFaults({ headers = {} }: Route): RouteFault[] {
  return (['request', 'response'] as const).flatMap(of => {
    const changes = headers[of]
    return changes === undefined
      ? []
      : changeFaults(of, changes).map(fault => ({ ...fault, path: ['headers', of, ...fault.path] }))
  })
}

/** What `cors` says must not be said again. */
function corsFaults({ cors, headers = {} }: Route): RouteFault[] {
  const { set = {}, add = {} } = headers.response ?? {}
  if (cors === undefined) return []
  const message = '"cors" of this route says it already. Remove one of the two.'
  return Object.entries({ set, add }).flatMap(([key, fields]) =>
    Object.keys(fields)
      .filter(name => lettersOf(name).startsWith('accesscontrol'))
      .map(name => ({ path: ['headers', 'response', key, name], atKey: true, message })),
  )
}

function changeFaults(
  of: 'request' | 'response',
  { set = {}, add = {}, remove = [] }: Changes,
): RouteFault[] {
  const named = [
    ...Object.keys(set).map(name => ({ name, path: ['set', name], atKey: true })),
    ...Object.keys(add).map(name => ({ name, path: ['add', name], atKey: true })),
    ...remove.map((name, i) => ({ name, path: ['remove', i], atKey: false })),
  ]
  const changed = new Map<string, string>()
  return named.flatMap(({ name, ...place }) => {
    const letters = lettersOf(name)
    const other = changed.get(letters)
    changed.set(letters, name)
    const message = fieldFault(of, name, other, place.path[0] === 'set')
    return message === undefined ? [] : { ...place, message }
  })
}

function fieldFault(
  of: 'request' | 'response',
  name: string,
  other: string | undefined,
  isSet: boolean,
): string | undefined {
  if (isFieldOfGateway(name, of))
    return `"${name}" frames or forwards a message, or is the gateway's own: a route cannot change it.`
  if (of === 'response' && isSet && lettersOf(name) === 'setcookie')
    return 'Set "set-cookie" would replace every cookie of the upstream. Write it under "add".'
  if (other !== undefined)
    return `"${name}" is changed twice${other === name ? '' : `: servers may read it as "${other}"`}. Write it once.`
  return undefined
}
