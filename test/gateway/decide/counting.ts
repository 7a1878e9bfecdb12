/** Counter stores in virtual time, and helpers that query them. */
import type { Test } from 'tap'
import type { CreditStore } from '../../../gateway/decide/credit/credit.js'
import { RedisCredit } from '../../../gateway/decide/redis/redis-credit.js'
import { RedisStore } from '../../../gateway/decide/redis/redis-store.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import type { Answer, Ask, CounterStore } from '../../../gateway/decide/store/store.js'
import { LIFETIME_MS } from '../../../gateway/decide/windows/lifetime-window.js'
import type { Window } from '../../../gateway/demand.js'
import type { Algorithm } from '../../../gateway/types.js'
import { redisUrl } from '../../helpers/redis.js'
import { START } from './admissions.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }

/** A store whose clock is set by the test, in ms. */
export interface Bench {
  readonly store: CounterStore
  readonly credit: CreditStore
  at: number
  /** Asks `times` times at once; the answers in order. */
  many(ask: Ask, times: number): Promise<Answer[]>
}

export interface Kind {
  readonly name: string
  open(t: Test): Promise<Bench | undefined>
  readonly runs: number
}

export const ALGORITHMS: Algorithm[] = ['sliding-window', 'fixed-window', 'token-bucket']

export const kinds: readonly Kind[] = [
  {
    name: 'in process',
    runs: 12,
    open: async () => {
      const clock = { at: START }
      const store = new MemoryStore(() => clock.at)
      const many = async (ask: Ask, times: number) =>
        Array.from({ length: times }, () => store.take([ask])[0] as Answer)
      return Object.assign(clock, { store, credit: store.credit, many })
    },
  },
  {
    name: 'on Redis',
    runs: 20,
    open: async t => onRedis(t, await redisUrl(t)),
  },
]

/** Undefined without an address. */
export async function onRedis(t: Test, url: string | undefined): Promise<Bench | undefined> {
  if (url === undefined) return undefined
  const clock = { at: START }
  const store = new RedisStore({ url, log: quiet, clock: () => Math.round(clock.at * 1000) })
  t.teardown(() => store.close())
  await store.answers(5000)
  const many = async (ask: Ask, times: number) =>
    (await store.takeMany([ask], 'holder', times)).map(([answer]) => answer as Answer)
  return Object.assign(clock, { store, credit: new RedisCredit(store.connection), many })
}

let keys = 0
/** A key that has not been counted yet. */
export const freshKey = () => `test:{k${++keys}}`

export function windows(key: string, ...list: readonly Window[]): Ask {
  return { key, demand: { kind: 'windows', windows: list, lease: false }, group: 0, onStoreError: 'local' }
}
export function slots(key: string, max: number): Ask {
  return { key, demand: { kind: 'slots', max, ttlMs: 15_000 }, group: 0, onStoreError: 'local' }
}
export const windowOf = (quota: number, ms: number, algorithm: Algorithm = 'sliding-window'): Window => ({
  name: ms === 1000 ? 'burst' : 'sustained',
  quota,
  ms,
  algorithm,
})
export const burst = (quota: number) => windowOf(quota, 1000)
export const sustained = (quota: number) => windowOf(quota, 60_000)

/** A lifetime window. */
export const prepaid = (quota: number, name = 'prepaid'): Window => ({
  name,
  quota,
  ms: LIFETIME_MS,
  algorithm: 'fixed-window',
  lifetime: true,
})

/** Adds credit to that window of the key's project. */
export function addCredit({ credit }: Pick<Bench, 'credit'>, key: string, amount: number, id?: string) {
  const entry = {
    bucket: 'b',
    window: 'prepaid',
    amount,
    why: 'Invoice 7',
    by: 'dana',
    at: '2026-01-01T00:00:00Z',
  }
  return credit.add({ key, entry, most: 1_000_000, id })
}

/** Asks once at each moment, in ascending order; returns the moments at which it was admitted. */
export async function admittedAt(bench: Bench, ask: Ask, moments: readonly number[]): Promise<number[]> {
  const answers = moments.map(moment => {
    bench.at = moment
    return bench.store.take([ask], 'holder')
  })
  const granted = (await Promise.all(answers)).map(([answer]) => (answer as Answer).granted)
  return moments.filter((_, i) => granted[i])
}

/** How many of `times` requests at `moment` are admitted. */
export async function admitted(bench: Bench, ask: Ask, moment: number, times: number): Promise<number> {
  bench.at = moment
  return (await bench.many(ask, times)).filter(answer => answer.granted).length
}
