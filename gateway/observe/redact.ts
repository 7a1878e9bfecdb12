/** Makes personal data fit for logs: keyed hashes can be compared but not reversed. */
import { createHmac } from 'node:crypto'
import type { Project } from '../types.js'

const HASH_LENGTH = 16
/** Segments of a path with a hash of their own. A head has room for thousands, and each costs microseconds. */
const MOST_HASHED = 64

export class Redactor {
  readonly #salt: Buffer
  readonly #words: ReadonlySet<string>

  /** `salt` keys the hashes; `words` are the path segments that the configuration contains, which identify nobody. */
  constructor(salt: Buffer, words: ReadonlySet<string>) {
    this.#salt = salt
    this.#words = words
  }

  /** 16 characters (96 bits) of an HMAC-SHA256. */
  hash(text: string): string {
    return createHmac('sha256', this.#salt).update(text).digest('base64url').slice(0, HASH_LENGTH)
  }

  /** The project's id; of an unknown caller counted by client, its network as `network` gives it. */
  project({ id, client }: Pick<Project, 'id' | 'client'>): string {
    return client === undefined ? id : `${id.slice(0, id.length - client.length)}${this.network(client)}`
  }

  /** `203.0.113.0/24~HASH`: says where the client is, and tells it apart from others there. */
  network(network: string): string {
    return `${networkPrefix(network)}~${this.hash(network)}`
  }

  /**
   * The path, in which each segment that may identify a person or hold a secret is replaced by `~` and its hash: those
   * at a parameter of the route, and those the configuration does not contain. It still matches the same patterns. The
   * last that is hashed, where there are many, has the hash of the rest of the path; those after it are `~` alone.
   */
  path(path: string, route: string): string {
    const pattern = route.slice(route.indexOf('/') + 1).split('/')
    const segments = path.split('/')
    let hashed = 0
    return segments
      .map((segment, i) => {
        const isParameter = i > 0 && (pattern[i - 1]?.startsWith('{') ?? false)
        const isSafe = segment === '' || segment === '*' || (this.#words.has(segment) && !isParameter)
        if (isSafe) return segment
        hashed += 1
        if (hashed > MOST_HASHED) return '~'
        return `~${this.hash(hashed < MOST_HASHED ? segment : segments.slice(i).join('/'))}`
      })
      .join('/')
  }
}

/**
 * The network of an address: for IPv4 the /24. `network` is the address, or the /64 of an IPv6 one (`Facts.network`).
 */
export function networkPrefix(network: string): string {
  if (network.includes(':')) return network
  return network.replace(/\.[0-9]+$/, '.0/24')
}
