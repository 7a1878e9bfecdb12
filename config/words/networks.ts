/** Values by network. A look-up walks the bits of one address, so a thousand networks cost what ten cost. Pure. */
import { type Network, parseNetwork } from './address.js'

class Node<Value> {
  zero: Node<Value> | undefined
  one: Node<Value> | undefined
  values: readonly Value[] | undefined
}

export class PrefixTree<Value> {
  readonly #v4 = new Node<Value>()
  readonly #v6 = new Node<Value>()
  readonly #before: (a: Value, b: Value) => number

  /** @param before order of the values of one network, as for `sort` */
  constructor(before: (a: Value, b: Value) => number) {
    this.#before = before
  }

  add({ words, bits }: Network, value: Value): void {
    let node = this.#rootOf(words)
    for (let i = 0; i < bits; i += 1) {
      if (bitOf(words, i) === 0) node = node.zero ??= new Node()
      else node = node.one ??= new Node()
    }
    node.values = [...(node.values ?? []), value].sort(this.#before)
  }

  /** Removes those values of one network that `drops` selects, and then the nodes that lead nowhere. */
  remove({ words, bits }: Network, drops: (value: Value) => boolean): void {
    const path: Node<Value>[] = []
    let node: Node<Value> | undefined = this.#rootOf(words)
    for (let i = 0; i < bits && node !== undefined; i += 1) {
      path.push(node)
      node = bitOf(words, i) === 0 ? node.zero : node.one
    }
    if (node?.values === undefined) return
    const left = node.values.filter(value => !drops(value))
    node.values = left.length > 0 ? left : undefined
    for (let i = bits - 1; i >= 0 && isEmpty(node); i -= 1) {
      node = path[i] as Node<Value>
      if (bitOf(words, i) === 0) node.zero = undefined
      else node.one = undefined
    }
  }

  /** The value of the longest network that contains the given one, among the values that `accepts` selects. */
  find({ words, bits }: Network, accepts: (value: Value) => boolean): Value | undefined {
    let found: Value | undefined
    let node: Node<Value> | undefined = this.#rootOf(words)
    for (let i = 0; node !== undefined; i += 1) {
      if (node.values !== undefined) found = node.values.find(accepts) ?? found
      if (i === bits) break
      node = bitOf(words, i) === 0 ? node.zero : node.one
    }
    return found
  }

  #rootOf(words: readonly number[]): Node<Value> {
    return words.length === 1 ? this.#v4 : this.#v6
  }
}

function isEmpty({ zero, one, values }: Node<unknown>): boolean {
  return zero === undefined && one === undefined && values === undefined
}

function bitOf(words: readonly number[], i: number): number {
  return ((words[i >>> 5] as number) >>> (31 - (i & 31))) & 1
}

/**
 * Whether an address lies in one of a list of networks.
 *
 * @param cidrs addresses, or networks such as `203.0.113.0/24` and `2001:db8::/32`
 * @returns true for an address, or a whole network, that one of them holds
 */
export function createNetworks(cidrs: readonly string[]): (address: string) => boolean {
  const tree = new PrefixTree<true>(() => 0)
  for (const cidr of cidrs) {
    const network = parseNetwork(cidr)
    if (network !== undefined) tree.add(network, true)
  }
  return address => {
    const network = parseNetwork(address)
    return network !== undefined && tree.find(network, ANY) !== undefined
  }
}

const ANY = () => true
