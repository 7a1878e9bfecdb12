/** The routes of gateway.yaml, as fields to compare. */
import { createHash } from 'node:crypto'
import type { Gateway } from '../../../config/schema/gateway.js'
import type { FieldValues } from './changes.js'

type Route = Gateway['routes'][number]

/** Where each route leads, and what else it says. */
export function routesOf({ routes }: Gateway): FieldValues {
  const fields = routes.flatMap(({ host, path, upstream, split, redirect, respond, ...others }) => {
    const name = `route ${host ? `${host} ` : ''}${path}`
    const { auth, scopes, headers, ...rest } = others
    return [
      [name, whereTo({ upstream, split, redirect, respond })],
      ...(auth === 'required' ? [[`${name} auth`, auth]] : []),
      ...(scopes.length > 0 ? [[`${name} scopes`, scopes]] : []),
      ...(headers === undefined ? [] : [[`${name} headers`, headersText(headers)]]),
      ...(respond === undefined ? [] : [[`${name} respond`, respond]]),
      ...Object.entries(rest).map(([key, value]) => [`${name} ${key}`, value]),
    ]
  })
  return Object.fromEntries(fields)
}

/** What becomes of the requests of a route, in a few words. */
export function whereTo({ upstream, split, redirect, respond }: Partial<Route>): string {
  if (split !== undefined) return split.map(part => `${part.upstream} ${part.share}%`).join(', ')
  if (redirect !== undefined) return `redirect ${redirect.status} to ${redirect.to}`
  return respond === undefined ? String(upstream) : `answer ${respond.status}`
}

/** The names that are changed, and a digest instead of values, among which may be secrets. */
function headersText(headers: NonNullable<Route['headers']>): string {
  const names = Object.entries(headers).flatMap(([of, changes]) =>
    Object.entries(changes).flatMap(([change, fields]) =>
      (Array.isArray(fields) ? fields : Object.keys(fields)).map(field => `${of} ${change} ${field}`),
    ),
  )
  const digest = createHash('sha256').update(JSON.stringify(headers)).digest('hex').slice(0, 8)
  return `${names.join(', ')} (${digest})`
}
