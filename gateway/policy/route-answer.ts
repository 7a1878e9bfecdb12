/** Compiles `redirect` and `respond` of a route. Pure. */
import { GatewayError } from '../errors.js'
import type { RouteAnswer } from '../route.js'
import type { FaultHere } from './fault.js'
import { compileText, type Encode, inUrl, type TextFor } from './route-values.js'

export interface WrittenAnswer {
  readonly redirect?: { readonly to: string; readonly status: number } | undefined
  readonly respond?: { readonly status: number; readonly type: string; readonly body: string } | undefined
}

/** Undefined for a route to an upstream. */
export function compileAnswer(
  { redirect, respond }: WrittenAnswer,
  faults: FaultHere[],
): RouteAnswer | undefined {
  if (redirect !== undefined) return compileRedirect(redirect, faults)
  if (respond === undefined) return undefined
  const { status, type, body } = respond
  const isBodyless = status === 204 || status === 205 || status === 304
  if (isBodyless && body !== '') {
    faults.push({
      path: ['respond', 'body'],
      message: `A response of status ${status} has no body. Remove it.`,
    })
  }
  const fields = body === '' ? [] : ['content-type', type]
  return { status, fieldsFor: () => [...fields], body: Buffer.from(body) }
}

/** Not `${path}`, which is the path alone. */
const TARGET = /(?<!\$)\{path\}/
function compileRedirect(
  { to, status }: NonNullable<WrittenAnswer['redirect']>,
  faults: FaultHere[],
): RouteAnswer {
  const message = faultOf(to)
  if (message !== undefined) faults.push({ path: ['redirect', 'to'], message })
  const end = to.search(/[?#]/)
  const place = end === -1 ? to : to.slice(0, end)
  const placeFor = compileTarget(place, inUrl, asked => asked)
  const queryFor = compileTarget(to.slice(place.length), encodeURIComponent, encodeURIComponent)
  // biome-ignore lint/suspicious/noTemplateCurlyInString: that is how the value is written
  const needsHost = to.includes('${host}')
  return {
    status,
    body: Buffer.alloc(0),
    fieldsFor(facts, project) {
      // An HTTP/1.0 request may lack a Host.
      if (needsHost && facts.host === '') throw new GatewayError('bad-host')
      return ['location', placeFor(facts, project) + queryFor(facts, project)]
    },
  }
}

/** @param encodeTarget how the path and query that were asked for are written where they stand */
function compileTarget(text: string, encode: Encode, encodeTarget: (target: string) => string): TextFor {
  const pieces = text.split(TARGET).map(piece => compileText(piece, encode))
  return (facts, project) => {
    const target = encodeTarget((facts.speltPath ?? facts.path) + facts.query)
    return pieces.map(textFor => textFor(facts, project)).join(target)
  }
}

/** Why the client could choose another host, or get no address: a path begins with a slash. */
function faultOf(to: string): string | undefined {
  const unknown = /\{(?!path\})[^}]*\}?/.exec(to.replace(/\$\{[a-z.]+\}/g, ''))?.[0]
  if (unknown !== undefined)
    return `Unknown "${unknown}". Write {path} for the path and query that were asked for.`
  if (/^\/\$?\{path\}/.test(to))
    return `"${to}" would begin with two slashes, which is an address on another host. Write a segment before {path}.`
  if (to.startsWith('/')) return undefined
  const [authority = ''] = to.replace(/^https?:\/\//i, '').split(/[/?#]|\$?\{path\}/)
  if (authority === '')
    return `"${to}" names no host. Write it before the path, as in https://acme.test{path}.`
  if (/[^.]\$\{host\}/.test(authority))
    return `"${to}" would lead to another host than the one that was asked for. Write \${host} alone, or behind a dot.`
  if (authority.includes('@')) return `"${to}" holds a user. Remove what stands before the "@".`
  if (!isAuthority(authority.replace(/\$\{[a-z.]+\}/g, 'value')))
    return `No client can follow "${to}": "${authority}" is not a host name or address, with a port from 1 to 65535 if it needs one.`
  return undefined
}

function isAuthority(text: string): boolean {
  if (!URL.canParse(`https://${text}`)) return false
  const url = new URL(`https://${text}`)
  return url.port !== '0' && !url.hostname.replace(/\.$/, '').split('.').includes('')
}
