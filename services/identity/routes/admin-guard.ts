/** Who may administrate: whoever has a key, or, where no key is set, only this machine. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { BlockList, isIP } from 'node:net'
import { type Handler, HttpError, type Methods, type Request, type Routes } from '../http.js'

const THIS_MACHINE = new BlockList()
THIS_MACHINE.addSubnet('127.0.0.0', 8, 'ipv4')
THIS_MACHINE.addAddress('::1', 'ipv6')

const MIN_KEY_LENGTH = 8

/** The keys of IDENTITY_ADMIN_KEYS, separated by commas; empty: none. Throws an Error with a sentence. */
export function readAdminKeys(text: string | undefined): string[] {
  const keys = (text ?? '').split(',').map(key => key.trim())
  if (keys.length === 1 && keys[0] === '') return []
  if (keys.some(key => key.length < MIN_KEY_LENGTH || /\s/.test(key))) {
    throw new Error(
      `IDENTITY_ADMIN_KEYS has to be keys of at least ${MIN_KEY_LENGTH} characters without blanks, separated by commas`,
    )
  }
  return keys
}

/** `routes` for administrators only. */
export function guardAdmin(routes: Routes, keys: readonly string[]): Routes {
  const hashes = keys.map(hash)
  const guarded =
    (handler: Handler): Handler =>
    async request => {
      if (hashes.length > 0) demandKey(request, hashes)
      else demandThisMachine(request)
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

function demandKey(request: Request, hashes: readonly Buffer[]): void {
  const [, key] = /^(?:Api-Key|Bearer) +(\S+)$/i.exec(request.header('authorization') ?? '') ?? []
  // Hashes have one length and tell nothing of how much of a key was right.
  const given = hash(key ?? '')
  if (hashes.filter(known => timingSafeEqual(known, given)).length > 0) return
  throw new HttpError(401, 'unauthorized', 'Send "Authorization: Api-Key <key>" with an administration key.')
}

/** The gateway says by X-Forwarded-For whom a request passed; without the field it was made on this machine. */
function demandThisMachine(request: Request): void {
  const hops = (request.header('x-forwarded-for') ?? '127.0.0.1').split(',').map(hop => hop.trim())
  if (hops.every(hop => isIP(hop) > 0 && THIS_MACHINE.check(hop, isIP(hop) === 6 ? 'ipv6' : 'ipv4'))) return
  throw new HttpError(
    403,
    'forbidden',
    'Without an administration key only this machine may do that: set IDENTITY_ADMIN_KEYS and send one of them.',
  )
}

function hash(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}
