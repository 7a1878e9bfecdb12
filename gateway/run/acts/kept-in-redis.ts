/**
 * The entries and modes of the admin port, stored in Redis: every gateway and worker checks each second whether
 * they have changed.
 */
import { randomUUID } from 'node:crypto'
import { Unreachable } from '../../admin/refusals.js'
import { connectRedis, type RedisClient, reconnect } from '../../decide/store/redis-connection.js'
import { KEY_SPACE } from '../../redis-keys.js'
import type { Log } from '../../types.js'
import { type Contents, EMPTY, type Kept, type Planned, type Shelf } from './kept.js'
import { readKept } from './kept-form.js'

const ACCESS = `${KEY_SPACE}access`
/** Hashes of values by id. All are in the slot of the first, so that a Cluster changes them in one step. */
const KEYS: Readonly<Record<Shelf, string>> = {
  access: ACCESS,
  modes: `${KEY_SPACE}{${ACCESS}}:modes`,
  acts: `${KEY_SPACE}{${ACCESS}}:acts`,
}
const SHELVES = Object.keys(KEYS) as Shelf[]
/** The field of the first hash that is another after each change, `NUMBER.UUID` with a growing number; no id begins so. */
const VERSION = '#'
const LOOK_EVERY_MS = 1000
/** An answer that takes longer will not come. */
const PATIENCE_MS = 1000

/** A command and what is given to it. */
type Step =
  | readonly ['hset', string, string, string]
  | readonly ['hdel', string, string]
  | readonly ['del', string]

export interface KeptHooks {
  /** Hears of each change, whoever made it. */
  changed(): void
  /** Hears of each regular look that fails. */
  unanswered(): void
}

export class KeptInRedis implements Kept {
  contents: Contents = EMPTY
  readonly #redis: RedisClient
  readonly #hooks: KeptHooks
  readonly #log: Log
  readonly #timer: NodeJS.Timeout
  #version: string | undefined
  /** The JSON of the contents. */
  #texts: Readonly<Record<Shelf, Readonly<Record<string, string>>>> = { access: {}, modes: {}, acts: {} }
  /** The highest number that a version had. */
  #number = 0
  #looking: Promise<void> | undefined
  #changing: Promise<unknown> = Promise.resolve()

  /** A connection of its own keeps it out of the way of requests. */
  constructor(url: string, hooks: KeptHooks, log: Log) {
    this.#redis = connectRedis(url, log)
    this.#hooks = hooks
    this.#log = log
    this.#timer = setInterval(() => void this.#look().catch(hooks.unanswered), LOOK_EVERY_MS).unref()
  }

  /** Resolves when the contents are known, or when Redis does not answer in time. */
  async opened(): Promise<void> {
    const since = performance.now()
    while (performance.now() - since < PATIENCE_MS) {
      const isKnown = await this.#look().then(
        () => true,
        () => false,
      )
      if (isKnown) return
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }

  change<Result>(plan: (contents: Contents) => Planned<Result>): Promise<Result> {
    // One after the other: what a connection watches, the first EXEC on it forgets.
    const done = this.#changing.then(() => this.#change(plan))
    this.#changing = done.catch(() => undefined)
    return done
  }

  async refresh(): Promise<void> {
    await this.#lookAfter().catch(() => undefined)
  }

  close(): void {
    clearInterval(this.#timer)
    this.#redis.disconnect()
  }

  async #change<Result>(plan: (contents: Contents) => Planned<Result>): Promise<Result> {
    for (;;) {
      await this.#orUnreachable(async () => {
        await this.#lookAfter()
        await this.#within(this.#redis.watch(ACCESS))
        await this.#lookAfter()
      })
      const { changes, result } = plan(this.contents)
      const steps = changes.map(({ shelf, id, value }): Step => {
        const key = KEYS[shelf]
        return value === undefined ? ['hdel', key, id] : ['hset', key, id, JSON.stringify(value)]
      })
      const isDone = await this.#orUnreachable(() => this.#apply(steps, this.#number + 1))
      // The act is done even if this read fails.
      if (isDone) await this.refresh()
      if (isDone) return result
    }
  }

  /** False when another gateway was quicker. */
  async #apply(steps: readonly Step[], number: number): Promise<boolean> {
    const all = this.#redis.multi()
    for (const [command, ...given] of steps)
      (all[command] as (...given: readonly string[]) => unknown)(...given)
    const done = await this.#within(all.hset(ACCESS, VERSION, `${number}.${randomUUID()}`).exec())
    const failed = done?.find(([error]) => error !== null)?.[0]
    if (failed) throw failed
    return done !== null
  }

  /** Takes up what has changed. Rejects while Redis is away: then what was last known stays. */
  #look(): Promise<void> {
    this.#looking ??= this.#read().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  /** A look that began before is of no use. */
  async #lookAfter(): Promise<void> {
    await this.#looking?.catch(() => undefined)
    await this.#look()
  }

  async #read(): Promise<void> {
    const version = await this.#within(this.#redis.hget(ACCESS, VERSION))
    if (version === (this.#version ?? null)) return
    if (this.#version !== undefined && numberOf(version) < this.#number) await this.#restore()
    const [access = {}, modes = {}, acts = {}] = await this.#readAll()
    const texts = { access, modes, acts }
    const values = SHELVES.map(shelf => [shelf, this.#parsed(shelf, texts[shelf])])
    this.contents = Object.fromEntries(values) as Contents
    this.#texts = texts
    this.#version = access[VERSION]
    const number = numberOf(this.#version ?? null)
    if (number < Number.POSITIVE_INFINITY) this.#number = Math.max(this.#number, number)
    this.#hooks.changed()
  }

  /**
   * In the order of the shelves, the first of which has the version: what changes meanwhile is read at the next look. No
   * transaction, since its end would end what `#change` watches.
   */
  async #readAll(): Promise<Readonly<Record<string, string>>[]> {
    const all = this.#redis.pipeline()
    for (const shelf of SHELVES) all.hgetall(KEYS[shelf])
    const answers = (await this.#within(all.exec())) ?? []
    return answers.map(([error, texts]) => {
      if (error !== null) throw error
      return texts as Record<string, string>
    })
  }

  /**
   * A Redis that comes back without its memory, or with an older one: what was in force stays in force. It gets the number it
   * had, so that a gateway which knows of a later change puts that back in turn.
   */
  async #restore(): Promise<void> {
    const steps = SHELVES.flatMap((shelf): Step[] => [
      ['del', KEYS[shelf]],
      ...[...this.contents[shelf]].map(
        ([id, value]): Step => ['hset', KEYS[shelf], id, JSON.stringify(value)],
      ),
    ])
    await this.#apply(steps, this.#number)
    this.#log.warn({}, 'Redis had lost access entries, modes and acts: they were restored')
  }

  /**
   * Without what cannot be read: it is not in force here, and the log says so. What has not changed is the same object as
   * before.
   */
  #parsed(
    shelf: Shelf,
    { [VERSION]: _version, ...texts }: Readonly<Record<string, string>>,
  ): Map<string, never> {
    const values = new Map<string, never>()
    for (const [id, text] of Object.entries(texts)) {
      const known = this.#texts[shelf][id] === text ? this.contents[shelf].get(id) : undefined
      try {
        values.set(id, (known ?? readKept(shelf, text)) as never)
      } catch (error) {
        this.#log.error({ err: error, shelf, id }, 'what Redis keeps for the admin port cannot be read')
      }
    }
    return values
  }

  async #orUnreachable<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      throw new Unreachable('Redis does not answer: nothing has changed.', { cause: error })
    }
  }

  /** Gives up a connection that swallows bytes. */
  async #within<T>(answer: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        reconnect(this.#redis, ACCESS)
        reject(new Error(`Redis has not answered within ${PATIENCE_MS} ms.`))
      }, PATIENCE_MS)
    })
    return Promise.race([answer, late]).finally(() => clearTimeout(timer))
  }
}

/** Of a Redis without a version -1; of a version that a former release wrote, which has no number, more than any. */
function numberOf(version: string | null): number {
  if (version === null) return -1
  const [, number] = /^(\d+)\./.exec(version) ?? []
  return number === undefined ? Number.POSITIVE_INFINITY : Number(number)
}
