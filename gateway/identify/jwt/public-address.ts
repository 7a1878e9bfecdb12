/** Which addresses are of the public internet, by the special-purpose registries of IANA (RFC 6890). */
import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { parseAddress } from '../../../config/words/address.js'
import { createNetworks } from '../../../config/words/networks.js'

const isSpecial = createNetworks([
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24'],
  ...['203.0.113.0/24', '224.0.0.0/3'],
])
/** All that is assigned for the public internet, without those parts that are translated or for documentation. */
const isGlobal = createNetworks(['2000::/3'])
const isSpecial6 = createNetworks(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'])

/** Undefined for a text that is no address. */
export function isPublicAddress(address: string): boolean | undefined {
  const parsed = parseAddress(address)
  if (parsed === undefined) return undefined
  return parsed.words.length === 1 ? !isSpecial(address) : isGlobal(address) && !isSpecial6(address)
}

/** Resolves a name for a connection, and refuses it if any of its addresses is not public: those checked are connected to. */
export const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    const [first] = addresses ?? []
    if (error || first === undefined) return callback(error ?? new Error(`${hostname} has no address`), '', 0)
    const refused = addresses.find(({ address }) => isPublicAddress(address) !== true)
    if (refused)
      return callback(new Error(`${hostname} is not a public address; allowPrivate: true allows it`), '', 0)
    if (options.all) return callback(null, addresses)
    return callback(null, first.address, first.family)
  })
}
