/** Whether an address lies in one of a list of networks: as quick for a thousand of them as for ten. Pure. */
import { parseNetwork } from './address.js'
import { PrefixTree } from './prefix-tree.js'

/**
 * @param cidrs addresses, or networks such as `203.0.113.0/24` and `2001:db8::/32`
 * @returns true for an address, or a whole network, that one of them holds
 */
export function createNetworks(cidrs: readonly string[]): (address: string) => boolean {
  const tree = new PrefixTree<true>(() => 0)
  for (const cidr of cidrs) {
    const network = parseNetwork(cidr)
    if (network !== undefined) tree.add(network, true)
  }
  const any = () => true
  return address => {
    const network = parseNetwork(address)
    return network !== undefined && tree.find(network, any) !== undefined
  }
}
