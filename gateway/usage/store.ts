/** Keeps usage for as long as `usage.keep` says: in this process, or in Redis for all gateways on it. */
import { randomUUID } from 'node:crypto'
import { KEY_SPACE } from '../decide/redis/key-space.js'
import { SideConnection } from '../decide/redis/side-connection.js'
import { Unreachable } from '../errors.js'
import type { Log } from '../types.js'
import { addTo, COUNTED, HOUR_MS, type HourCounts, hourOf, type UsageCounts } from './row.js'

/** Counts that belong to one hour. */
export interface UsageBatch {
  readonly hour: number
  readonly counts: HourCounts
}

export interface UsageStore {
  /** Adds a batch. If it rejects, the same batch is given again before any other: it is never counted twice. */
  add(batch: UsageBatch, keepMs: number): Promise<void>
  /** The counts of an hour. @throws {Unreachable} */
  read(hour: number): Promise<HourCounts>
  close(): void
}

/** @param redis its address; '' for this process alone */
export function openUsageStore(redis: string, log: Log): UsageStore {
  return redis === '' ? new MemoryUsage() : new RedisUsage(new SideConnection(redis, log))
}

class MemoryUsage implements UsageStore {
  readonly #hours = new Map<number, Map<string, UsageCounts>>()

  async add({ hour, counts }: UsageBatch, keepMs: number): Promise<void> {
    const known = this.#hours.get(hour) ?? new Map()
    this.#hours.set(hour, known)
    for (const [name, more] of counts) addTo(known, name, more)
    const oldest = hourOf(Date.now() - keepMs)
    for (const kept of this.#hours.keys()) if (kept < oldest) this.#hours.delete(kept)
  }

  async read(hour: number): Promise<HourCounts> {
    return this.#hours.get(hour) ?? new Map()
  }

  close(): void {}
}

/** Fields and numbers of one call: so many take Redis less than a millisecond. */
const MOST_NAMES = 200
/** Begins the fields that hold the last batch of each process; all others begin with a bracket. */
const LAST = '#'
/** Adds numbers to fields, unless the process had this batch or a later one added before. */
const ADD = `local last = '${LAST}' .. ARGV[1]
if tonumber(redis.call('HGET', KEYS[1], last) or '0') >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], last, ARGV[2])
for i = 4, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`

/** A hash for each hour, by name and what is counted. */
class RedisUsage implements UsageStore {
  readonly #redis: SideConnection
  readonly #process = randomUUID()
  /** Parts sent so far. One that failed keeps its number, because it may have arrived. */
  #sent = 0
  #failed:
    | { readonly batch: UsageBatch; readonly parts: readonly (readonly [string, UsageCounts])[][] }
    | undefined

  constructor(redis: SideConnection) {
    this.#redis = redis
  }

  async add(batch: UsageBatch, keepMs: number): Promise<void> {
    const parts = this.#failed?.batch === batch ? [...this.#failed.parts] : partsOf(batch.counts)
    const key = keyOf(batch.hour)
    // The hour itself may only have begun.
    const ms = keepMs + HOUR_MS
    while (parts.length > 0) {
      this.#failed = { batch, parts: [...parts] }
      const numbers = (parts[0] ?? []).flatMap(fieldsOf)
      const given = [this.#process, this.#sent + 1, ms, ...numbers]
      await this.#redis.call(key, client => client.eval(ADD, 1, key, ...given))
      this.#sent += 1
      parts.shift()
    }
    this.#failed = undefined
  }

  async read(hour: number): Promise<HourCounts> {
    const key = keyOf(hour)
    try {
      return countsIn(await this.#redis.call(key, client => client.hgetall(key)))
    } catch (error) {
      throw new Unreachable('Redis does not answer: what was used cannot be read now.', { cause: error })
    }
  }

  close(): void {
    this.#redis.close()
  }
}

const keyOf = (hour: number): string => `${KEY_SPACE}usage:${hour}`

function partsOf(counts: HourCounts): (readonly [string, UsageCounts])[][] {
  const all = [...counts]
  const length = Math.ceil(all.length / MOST_NAMES)
  return Array.from({ length }, (_, i) => all.slice(i * MOST_NAMES, (i + 1) * MOST_NAMES))
}

function fieldsOf([name, counts]: readonly [string, UsageCounts]): (string | number)[] {
  return COUNTED.flatMap(what => (counts[what] === 0 ? [] : [`${name}${what}`, counts[what]]))
}

const NOTHING: UsageCounts = { requests: 0, admitted: 0, refused: 0, cost: 0 }

function countsIn(fields: Readonly<Record<string, string>>): HourCounts {
  const counts = new Map<string, UsageCounts>()
  for (const [field, number] of Object.entries(fields)) {
    const end = field.lastIndexOf(']') + 1
    if (field.startsWith(LAST) || end === 0) continue
    addTo(counts, field.slice(0, end), { ...NOTHING, [field.slice(end)]: Number(number) })
  }
  return counts
}
