/**
 * The entries, modes and negotiated limits of the admin port, stored in Redis: every gateway and worker checks each
 * second whether they have changed.
 */
import { connectRedis, type RedisClient, reconnect } from '../decide/redis/connection.js'
import { KEY_SPACE } from '../decide/redis/key-space.js'
import { Unreachable } from '../errors.js'
import type { Log } from '../types.js'
import {
  type Collection,
  type Contents,
  EMPTY,
  type OverrideChange,
  type OverrideStore,
  type Planned,
} from './store.js'
import { NO_TEXTS, readTexts, type Texts } from './stored-form.js'
import { MOST_IDS, NONE, nextOf, relationOf, type Version, versionOf } from './version.js'

const ACCESS = `${KEY_SPACE}access`
/** Hashes of values by id. All are in the slot of the first, so that a Cluster can change them in one transaction. */
const KEYS: Readonly<Record<Collection, string>> = {
  access: ACCESS,
  modes: `${KEY_SPACE}{${ACCESS}}:modes`,
  quotas: `${KEY_SPACE}{${ACCESS}}:quotas`,
  overrides: `${KEY_SPACE}{${ACCESS}}:overrides`,
}
const COLLECTIONS = Object.keys(KEYS) as Collection[]
/** Field of the first hash that differs after each change; no id begins like this. */
const VERSION = '#'
const LOOK_EVERY_MS = 1000
/** Longest wait for a reply from Redis. */
const PATIENCE_MS = 1000

/** A command and its arguments. */
type Step =
  | readonly ['HSET', string, string, string]
  | readonly ['HDEL', string, string]
  | readonly ['DEL', string]

/** Performs all steps and stores the next version, or does nothing when the version is not the expected one. */
const APPLY = `if (redis.call('HGET', KEYS[1], '${VERSION}') or '') ~= ARGV[1] then return 0 end
for _, step in ipairs(cjson.decode(ARGV[2])) do redis.call(unpack(step)) end
redis.call('HSET', KEYS[1], '${VERSION}', ARGV[3])
return 1`

export interface OverrideStoreHooks {
  /** Called after each change, whoever made it. */
  changed(): void
  /** Called for each regular look that fails. */
  unanswered(): void
}

export class RedisOverrideStore implements OverrideStore {
  contents: Contents = EMPTY
  readonly #redis: RedisClient
  readonly #hooks: OverrideStoreHooks
  readonly #log: Log
  readonly #timer: NodeJS.Timeout
  #version = NONE
  /** The latest versions known, the latest last, with what was known before each. */
  readonly #recent: { readonly id: string | undefined; readonly before: Texts }[] = []
  #texts: Texts = NO_TEXTS
  #looking: Promise<void> | undefined
  #changing: Promise<unknown> = Promise.resolve()

  /** Uses a connection of its own, so that it does not delay requests. */
  constructor(url: string, hooks: OverrideStoreHooks, log: Log) {
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
    // One at a time: of several at once, all but one would have to start over.
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
      await orUnreachable(() => this.#lookAfter(), 'Redis does not answer: nothing has changed.')
      const { changes, result } = plan(this.contents)
      const texts = changedBy(this.#texts, changes)
      const steps = changes.map(({ collection, id }) => stepOf(collection, id, textIn(texts[collection], id)))
      const [before, after] = [this.#version, nextOf(this.#version)]
      const isDone = await orUnreachable(
        () => this.#apply(steps, before, after),
        'Redis does not answer: the change may or may not have been made. Look before you try again.',
      )
      if (!isDone) continue
      // Not read from Redis, which may have lost it by now: then only this gateway knows it.
      if (this.#version === before) this.#adopt(texts, after)
      else await this.refresh()
      return result
    }
  }

  /** False when the version is no longer `expected`: another gateway changed something first. */
  async #apply(steps: readonly Step[], expected: Version, next: Version): Promise<boolean> {
    const keys = Object.values(KEYS)
    const given = [expected.text ?? '', JSON.stringify(steps), next.text ?? '']
    return (await this.#within(this.#redis.eval(APPLY, keys.length, ...keys, ...given))) === 1
  }

  #adopt(texts: Texts, version: Version): void {
    this.contents = readTexts(texts, { texts: this.#texts, contents: this.contents }, this.#log)
    this.#recent.push({ id: version.ids[0], before: this.#texts })
    if (this.#recent.length > MOST_IDS) this.#recent.shift()
    this.#texts = texts
    this.#version = version
    this.#hooks.changed()
  }

  /** Reads what has changed. Rejects while Redis is unavailable; the contents then stay as last known. */
  #look(): Promise<void> {
    this.#looking ??= this.#read().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  /** Waits for a look in progress and looks again, since that one may have begun too early. */
  async #lookAfter(): Promise<void> {
    await this.#looking?.catch(() => undefined)
    await this.#look()
  }

  async #read(): Promise<void> {
    const text = await this.#within(this.#redis.hget(ACCESS, VERSION))
    if (text === (this.#version.text ?? null)) return
    const [access = {}, modes = {}, quotas = {}, overrides = {}] = await this.#readAll()
    const { [VERSION]: current, ...entries } = access
    const texts = { access: entries, modes, quotas, overrides }
    const found = versionOf(current)
    const relation = relationOf(found, this.#version)
    if (relation.is === 'before') {
      await this.#restore(this.#allSteps(), found, this.#version)
      return this.#read()
    }
    const lost = relation.is === 'beside' ? this.#lostSteps(texts, relation.common) : []
    if (lost.length > 0) {
      await this.#restore(lost, found, nextOf(found))
      return this.#read()
    }
    this.#adopt(texts, found)
  }

  /** Reads the collections in order; the first holds the version, so what changes meanwhile is read at the next look. */
  async #readAll(): Promise<Readonly<Record<string, string>>[]> {
    const all = this.#redis.pipeline()
    for (const collection of COLLECTIONS) all.hgetall(KEYS[collection])
    const answers = (await this.#within(all.exec())) ?? []
    return answers.map(([error, texts]) => {
      if (error !== null) throw error
      return texts as Record<string, string>
    })
  }

  /** For a Redis that has come back empty or with older data: what was in force stays in force. */
  #allSteps(): Step[] {
    return COLLECTIONS.flatMap(collection => [
      ['DEL', KEYS[collection]] as const,
      ...Object.entries(this.#texts[collection]).map(([id, text]) => stepOf(collection, id, text)),
    ])
  }

  /**
   * Makes the changes again that Redis has lost, while others have changed something: what they have changed stays as it
   * is now. If Redis was empty for them, only what it lacks is added.
   */
  #lostSteps(texts: Texts, common: string | undefined): Step[] {
    const { ids } = this.#version
    const since = new Set(common === undefined ? [] : ids.slice(0, ids.indexOf(common)))
    const before = this.#recent.find(({ id = '' }) => since.has(id))?.before ?? NO_TEXTS
    return COLLECTIONS.flatMap(collection => {
      const [now, then, mine] = [texts[collection], before[collection], this.#texts[collection]]
      const isLost = (id: string) =>
        textIn(mine, id) !== textIn(then, id) && textIn(now, id) === textIn(then, id)
      const all = new Set([...Object.keys(mine), ...Object.keys(then)])
      return [...all].filter(isLost).map(id => stepOf(collection, id, textIn(mine, id)))
    })
  }

  /** Does nothing when another gateway was faster. */
  async #restore(steps: readonly Step[], found: Version, next: Version): Promise<void> {
    if (await this.#apply(steps, found, next))
      this.#log.warn(
        {},
        'Redis had lost access entries, modes, negotiated limits and overrides: they were restored',
      )
  }

  /** Rejects when Redis does not reply in time, and replaces the connection. */
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

async function orUnreachable<Result>(work: () => Promise<Result>, message: string): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw new Unreachable(message, { cause: error })
  }
}

/** An id may be a word that every object knows, such as `constructor`. */
function textIn(texts: Readonly<Record<string, string>>, id: string): string | undefined {
  return Object.hasOwn(texts, id) ? texts[id] : undefined
}

function stepOf(collection: Collection, id: string, text: string | undefined): Step {
  return text === undefined ? ['HDEL', KEYS[collection], id] : ['HSET', KEYS[collection], id, text]
}

function changedBy(texts: Texts, changes: readonly OverrideChange[]): Texts {
  const next: Record<Collection, Record<string, string>> = {
    access: { ...texts.access },
    modes: { ...texts.modes },
    quotas: { ...texts.quotas },
    overrides: { ...texts.overrides },
  }
  for (const { collection, id, value } of changes) {
    if (value === undefined) delete next[collection][id]
    else next[collection][id] = JSON.stringify(value)
  }
  return next
}
