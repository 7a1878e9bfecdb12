/** Restricts administration to holders of a key or, if no key is set, to this machine. */

import { BlockList, isIP } from 'node:net'
import { HttpError } from '../../http/errors.js'
import { type CountWrongKey, refuseWrongKeys } from '../../http/wrong-keys.js'
import { hashKey, presentsKey } from '../../keys.js'
import type { IdentityHandler, IdentityRequest, IdentityRoutes, Methods } from '../http.js'

const THIS_MACHINE = new BlockList()
THIS_MACHINE.addSubnet('127.0.0.0', 8, 'ipv4')
THIS_MACHINE.addAddress('::1', 'ipv6')

/** The host name in BASE_URL; '' when it is not set. Throws an Error with a sentence. */
export function readPublicHost(text: string | undefined): string {
  if (!text) return ''
  if (URL.canParse(text) && /^https?:/i.test(text)) return new URL(text).hostname
  throw new Error('BASE_URL has to be an http or https address such as https://gateway.example.com')
}

/** `routes` for administrators only. `publicHost` is another name of this machine; '' for none. */
export function guardAdmin(
  routes: IdentityRoutes,
  keys: readonly string[],
  wrongKey: CountWrongKey<'identity'>,
  publicHost: string,
): IdentityRoutes {
  const hashes = keys.map(hashKey)
  const guarded =
    (handler: IdentityHandler): IdentityHandler =>
    async request => {
      if (hashes.length === 0) demandThisMachine(request, publicHost)
      else if (!presentsKey(request.header('authorization'), hashes)) return refuseKey(request, wrongKey)
      return handler(request)
    }
  return new Map(
    [...routes].map(([path, methods]) => [
      path,
      Object.fromEntries(
        Object.entries(methods).map(([method, handler]) => [method, guarded(handler)]),
      ) as Methods,
    ]),
  )
}

async function refuseKey(request: IdentityRequest, wrongKey: CountWrongKey<'identity'>): Promise<never> {
  const { source } = request
  await refuseWrongKeys(wrongKey, 'identity', { source, authorization: request.header('authorization') })
  throw new HttpError(401, 'Send "Authorization: Api-Key <key>" with an administration key.', 'unauthorized')
}

/**
 * The gateway lists in X-Forwarded-For the hosts that a request passed before it; the last hop is the connection's.
 * Another site can make its own name resolve to this machine (DNS rebinding): such a request has that name as its
 * Host.
 */
function demandThisMachine(request: IdentityRequest, publicHost: string): void {
  const forwarded = request.header('x-forwarded-for')?.split(',') ?? []
  const hops = [...forwarded, request.peer].map(hop => hop.trim())
  if (!hops.every(hop => isIP(hop) > 0 && THIS_MACHINE.check(hop, isIP(hop) === 6 ? 'ipv6' : 'ipv4'))) {
    throw new HttpError(
      403,
      'Without an administration key only this machine may do that: set IDENTITY_ADMIN_KEYS and send one of them.',
      'forbidden',
    )
  }
  const hosts = [request.header('host'), request.header('x-forwarded-host')].filter(
    host => host !== undefined,
  )
  if (hosts.every(host => isNameHere(host, publicHost))) return
  throw new HttpError(
    421,
    'Without an administration key this answers to "localhost", IP addresses and the host of BASE_URL only.',
    'misdirected',
  )
}

function isNameHere(host: string, publicHost: string): boolean {
  const url = `http://${host}`
  const name = URL.canParse(url) ? new URL(url).hostname : ''
  const isLoopback = name === 'localhost' || name.endsWith('.localhost')
  return isLoopback || isIP(name.replace(/^\[|\]$/g, '')) !== 0 || (publicHost !== '' && name === publicHost)
}
