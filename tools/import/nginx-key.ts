/** The key of an nginx zone: its variables as parts of a key, a whitelist by `geo` and `map` as networks. */

import { parseNetwork } from '../../config/words/address.js'
import type { KeyPart } from '../../config/words/words.js'
import { deniedNetworks } from './networks.js'
import type { Directive } from './nginx-text.js'

/** A zone's key, in terms of a rule. */
export interface ZoneKey {
  readonly parts: readonly KeyPart[]
  /** Addresses that the zone does not count. */
  readonly exempt?: readonly string[]
  /** The only addresses that it counts. */
  readonly only?: readonly string[]
  /** Set where the key is never empty, so that requests without one of its headers are counted, too. */
  readonly missing?: 'shared'
}

const PARTS: Readonly<Record<string, KeyPart>> = {
  binary_remote_addr: 'client-ip',
  remote_addr: 'client-ip',
  host: 'host',
  server_name: 'path',
  uri: 'full-path',
  document_uri: 'full-path',
  request_uri: 'full-path',
  request_method: 'method',
}

/** Lines of a `map` that are no text to compare with: expressions, escapes, and settings of the map. */
const NO_TEXT = /^([~\\]|(hostnames|volatile|include)$)/

/** The variables that the file itself defines, by `geo` and `map`. */
export class Variables {
  readonly #blocks = new Map<string, Directive>()

  /** Adds a `geo` or `map`. */
  add(directive: Directive): void {
    this.#blocks.set(directive.words.at(-1) ?? '', directive)
  }

  /** Undefined when a rule cannot count by a part of the key. */
  keyOf(text: string): ZoneKey | undefined {
    const names = [...text.matchAll(/\$(?:\{(\w+)\}|(\w+))/g)].map(([, braced, bare]) => braced ?? bare ?? '')
    if (names.length === 1 && this.#blocks.has(`$${names[0]}`)) return this.#mapped(`$${names[0]}`)
    const parts = names.map(partOf)
    if (parts.length === 0 || parts.some(part => part === undefined)) return undefined
    const isEmptyWithout = /^\$(\{\w+\}|\w+)$/.test(text)
    return { parts: [...new Set(parts as KeyPart[])], ...(!isEmptyWithout && { missing: 'shared' as const }) }
  }

  /** For a `map` of a variable that `geo` sets by address, where an empty key means that a request is not counted. */
  #mapped(name: string): ZoneKey | undefined {
    const map = this.#blocks.get(name)
    const geo = this.#blocks.get(map?.words[0] ?? '')
    if (map?.name !== 'map' || geo?.name !== 'geo') return undefined
    // By another variable than the client's address, as in "geo $arg_ip $limited", it says nothing about the address.
    if (geo.words.length !== 1 && geo.words[0] !== '$remote_addr') return undefined
    const lines = map.block ?? []
    if (lines.some(({ name }) => NO_TEXT.test(name))) return undefined
    const keys = new Map(lines.map(({ name: value, words }) => [value.toLowerCase(), words[0] ?? '']))
    const keyOf = (value: string): string => keys.get(value.toLowerCase()) ?? keys.get('default') ?? ''
    const entries = (geo.block ?? []).map(({ name: network, words }) => ({
      network,
      key: keyOf(words[0] ?? ''),
    }))
    const fallback = entries.find(({ network }) => network === 'default')?.key ?? keyOf('')
    const networks = entries.filter(({ network }) => network !== 'default')
    const counted = new Set([fallback, ...networks.map(({ key }) => key)].filter(key => key !== ''))
    const [only] = counted
    if (only === undefined || counted.size !== 1 || this.#blocks.has(only)) return undefined
    const key = this.keyOf(only)
    if (key === undefined) return undefined
    const isCounted = fallback === ''
    const chosen = networksWhere(networks, ({ key }) => (key !== '') === isCounted)
    if (chosen === undefined) return undefined
    return isCounted ? { ...key, only: chosen } : { ...key, exempt: chosen }
  }
}

interface Entry {
  readonly network: string
  readonly key: string
}

/** The addresses for which the longest network that holds them is one of the chosen ones. */
function networksWhere(entries: readonly Entry[], isChosen: (entry: Entry) => boolean): string[] | undefined {
  const bits = ({ network }: Entry): number => parseNetwork(network)?.bits ?? Number.NaN
  if (entries.some(entry => Number.isNaN(bits(entry)))) return undefined
  // Of a network that is written twice, nginx takes the last line.
  const longestFirst = [...entries].reverse().sort((a, b) => bits(b) - bits(a))
  return deniedNetworks(longestFirst.map(entry => ({ allow: !isChosen(entry), network: entry.network })))
}

function partOf(name: string): KeyPart | undefined {
  if (Object.hasOwn(PARTS, name)) return PARTS[name]
  const header = /^http_(\w+)$/.exec(name)?.[1]
  return header === undefined ? undefined : `header:${header.toLowerCase().replaceAll('_', '-')}`
}
