/** Who makes a notification: the first gateway that claims it, by Redis, or by this process alone. */
import { KEY_SPACE } from '../decide/redis/key-space.js'
import type { SideConnection } from '../decide/redis/side-connection.js'
import type { Log } from '../types.js'

/** Takes the claim, or extends it. */
const CLAIM = `if redis.call('SET', KEYS[1], '1', 'PX', ARGV[1], 'NX') then return 1 end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 0`
/** Claims that this process remembers. */
const MOST = 100_000

/** While Redis is away, what this process remembers decides. */
export class Claims {
  readonly #redis: SideConnection | undefined
  readonly #log: Log
  /** Ends of claims in ms since the epoch, by name, in the order in which they were made. */
  readonly #ends = new Map<string, number>()

  /** @param redis undefined if this process counts alone */
  constructor(redis: SideConnection | undefined, log: Log) {
    this.#redis = redis
    this.#log = log
  }

  /** True for the first. Never rejects. */
  async claim(name: string, ms: number): Promise<boolean> {
    const isFirst = (this.#ends.get(name) ?? 0) <= Date.now()
    this.#remember(name, ms)
    if (this.#redis === undefined) return isFirst
    const key = keyOf(name)
    try {
      return (await this.#redis.call(key, client => client.eval(CLAIM, 1, key, ms))) === 1
    } catch (error) {
      this.#log.debug({ err: error }, 'a notification could not be claimed in Redis')
      return isFirst
    }
  }

  /** Best effort: a claim that is not shortened ends with its window. */
  shorten(name: string, ms: number): void {
    if (this.#ends.has(name)) this.#remember(name, ms)
    const key = keyOf(name)
    this.#redis
      ?.call(key, client => client.pexpire(key, ms))
      .catch(error => this.#log.debug({ err: error }, 'a claim could not be shortened in Redis'))
  }

  #remember(name: string, ms: number): void {
    this.#ends.delete(name)
    this.#ends.set(name, Date.now() + ms)
    if (this.#ends.size <= MOST) return
    const [oldest] = this.#ends.keys()
    this.#ends.delete(oldest as string)
  }
}

const keyOf = (name: string): string => `${KEY_SPACE}notified:${name}`
