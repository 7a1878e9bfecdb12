/** Networks that hold far more than anybody's own machines. */
import { parseNetwork } from '../../config/words/address.js'
import { createNetworks } from '../../config/words/networks.js'

/** 10.0.0.0/8 is the widest private network, a /19 of IPv6 among the largest of one company. */
const FEWEST_BITS = { v4: 8, v6: 19 }
/** Private addresses of IPv6 (RFC 4193), and those of neighbours (RFC 4291, section 2.5.6). */
const isPrivate = createNetworks(['fc00::/7', 'fe80::/10'])

/** True for a network, as text, that cannot but hold clients. */
export function holdsClients(network: string): boolean {
  const { words, bits } = parseNetwork(network) ?? { words: [], bits: 128 }
  return bits < (words.length === 1 ? FEWEST_BITS.v4 : FEWEST_BITS.v6) && !isPrivate(network)
}
