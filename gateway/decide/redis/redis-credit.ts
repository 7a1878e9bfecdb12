/** Credit in Redis, beside the counters that it adds to (`lua/credit.lua`). */
import { createHash } from 'node:crypto'
import {
  type AddedCredit,
  type CreditAnswer,
  type CreditEntry,
  type CreditStore,
  creditIdKey,
  creditKey,
  creditsKey,
  ID_MS,
  MOST_LISTED,
  type NewCredit,
} from '../credit/credit.js'
import type { RedisClient } from './connection.js'

export class RedisCredit implements CreditStore {
  readonly #redis: RedisClient

  constructor(redis: RedisClient) {
    this.#redis = redis
  }

  async add({ key, entry, most, id }: NewCredit): Promise<CreditAnswer> {
    const keys = [creditKey(key), creditsKey(key)]
    if (id !== undefined) keys.push(creditIdKey(key, createHash('sha256').update(id).digest('base64url')))
    const { window, amount } = entry
    const [result, said] = await this.#redis.credit(
      keys.length,
      ...keys,
      ...[window, amount, most, JSON.stringify(entry), MOST_LISTED, ID_MS],
    )
    if (result === 'beyond') return { result, credit: Number(said) }
    return { result: result as 'added' | 'repeated', entry: entryIn(said) }
  }

  async list(key: string): Promise<readonly AddedCredit[]> {
    return (await this.#redis.lrange(creditsKey(key), 0, MOST_LISTED - 1)).map(entryIn)
  }
}

/** Stored as the credit after it, a space and the entry as JSON: Redis's own JSON has too few digits. */
function entryIn(stored: string): AddedCredit {
  const space = stored.indexOf(' ')
  const entry = JSON.parse(stored.slice(space + 1)) as CreditEntry
  return { ...entry, credit: Number(stored.slice(0, space)) }
}
