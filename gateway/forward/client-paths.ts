/** Paths in an upstream's response, put right for clients that reach the upstream under other paths. */
import { lowerName } from '../http1/names.js'
import type { PathRewrite } from '../route.js'

const ABSOLUTE = /^(https?:\/\/)([^/?#]*)((?:\/[^?#]*)?)((?:[?#].*)?)$/is

/**
 * Rewrites Location and the Path of cookies in the first `count` fields of a flat list, in place.
 *
 * @param authority that the client asked for: other hosts are none of our business
 */
export function toClientPaths(
  fields: string[],
  count: number,
  rewrite: PathRewrite,
  authority: string | undefined,
): void {
  for (let i = 0; i < count; i += 2) {
    const name = lowerName(fields[i] as string)
    if (name === 'location') fields[i + 1] = clientLocation(fields[i + 1] as string, rewrite, authority)
    else if (name === 'set-cookie') fields[i + 1] = clientCookie(fields[i + 1] as string, rewrite)
  }
}

/** References that are relative to the path asked for stay: clients resolve them against the path that they know. */
function clientLocation(value: string, rewrite: PathRewrite, authority: string | undefined): string {
  if (value[0] === '/') {
    if (value[1] === '/' || value[1] === '\\') return value
    const end = value.search(/[?#]/)
    const there = rewrite.forClient(end === -1 ? value : value.slice(0, end))
    return there === undefined ? value : there + (end === -1 ? '' : value.slice(end))
  }
  const [, scheme, host = '', path = '', rest] = ABSOLUTE.exec(value) ?? []
  if (scheme === undefined || authority === undefined) return value
  if (withoutUsualPort(host, scheme) !== withoutUsualPort(authority, scheme)) return value
  const there = rewrite.forClient(path || '/')
  return there === undefined ? value : scheme + host + there + rest
}

/** In lower case, without the port that clients use where none is written, and without a dot at the end of the name. */
function withoutUsualPort(authority: string, scheme: string): string {
  const port = /^https/i.test(scheme) ? ':443' : ':80'
  const lower = authority.toLowerCase().replace(/\.(?=:|$)/, '')
  return lower.endsWith(port) ? lower.slice(0, -port.length) : lower
}

/** Browsers accept cookies whose names begin so only with `Path=/`. */
const HOST_COOKIE = /^__host-/i

/** A cookie without a Path gets one from the path that its client asked for (RFC 6265 section 5.1.4). */
function clientCookie(value: string, rewrite: PathRewrite): string {
  if (HOST_COOKIE.test(value)) return value
  const [pair, ...attributes] = value.split(';')
  const changed = attributes.map(attribute => {
    const [name = '', ...more] = attribute.split('=')
    const path = more.join('=').trim()
    const there =
      name.trim().toLowerCase() === 'path' && path[0] === '/' ? rewrite.forClient(path) : undefined
    // "/v1/" would not match "/v1".
    return there === undefined
      ? attribute
      : `${name}=${path === '/' && there !== '/' ? there.slice(0, -1) : there}`
  })
  return [pair, ...changed].join(';')
}
