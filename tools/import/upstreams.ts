/** The upstreams of an imported configuration. */
import type { Origin } from './findings.js'
import type { Migration } from './migration.js'
import { From } from './yaml.js'

/** Limits and timeouts of an upstream; bytes, and times in milliseconds. */
export interface ImportedSettings {
  readonly maxBody?: number
  readonly timeouts?: { readonly connect?: number; readonly head?: number; readonly idle?: number }
}

export interface WeightedAddress {
  readonly url: string
  readonly weight: number
}

/** Active checks of each address; times in milliseconds. */
export interface ImportedHealth {
  readonly path: string
  readonly every: number
  readonly timeout: number
  readonly healthy: number
  readonly unhealthy: number
}

interface ImportedUpstream {
  readonly at: Origin
  readonly urls: readonly (string | WeightedAddress)[]
  settings: ImportedSettings
  health: object | undefined
}

const MOST_ADDRESSES = 64
const MOST_WEIGHT = 100
export const LONGEST_TIMEOUT_MS = 86_400_000

export class ImportedUpstreams {
  readonly #into: Migration
  readonly #upstreams = new Map<string, ImportedUpstream>()

  constructor(into: Migration) {
    this.#into = into
  }

  get isEmpty(): boolean {
    return this.#upstreams.size === 0
  }

  get first(): string {
    return this.#upstreams.keys().next().value ?? ''
  }

  /** Adds an upstream by its addresses and returns its name; undefined when none can be used. */
  add(name: string, addresses: readonly (string | WeightedAddress)[], at: Origin): string | undefined {
    const weights = new Map<string, number>()
    for (const one of addresses) {
      const { url, weight } = typeof one === 'string' ? { url: one, weight: 1 } : one
      // An address with a weight of 0 got no requests.
      if (weight === 0) continue
      const origin = this.#originOf(url, at)
      if (origin !== undefined) weights.set(origin, (weights.get(origin) ?? 0) + weight)
    }
    if (weights.size === 0) return undefined
    if (weights.size > MOST_ADDRESSES)
      this.#into.leftOut(at, 'the addresses after the 64th. An upstream has at most 64.')
    const unique = this.#into.nameFor('upstream', name.replace(/^.*@/, ''))
    const urls = this.#shared([...weights].slice(0, MOST_ADDRESSES), at)
    this.#upstreams.set(unique, { at, urls, settings: {}, health: undefined })
    return unique
  }

  /** Addresses with weights in their lowest terms, or without where all have the same. */
  #shared(
    weights: readonly (readonly [url: string, weight: number])[],
    at: Origin,
  ): (string | WeightedAddress)[] {
    const divisor = weights.map(([, weight]) => weight).reduce(commonDivisor)
    const lowest = weights.map(([url, weight]) => ({ url, weight: weight / divisor }))
    const isFine = lowest.every(
      ({ weight }) => Number.isInteger(weight) && weight > 0 && weight <= MOST_WEIGHT,
    )
    if (!isFine) this.#into.leftOut(at, 'the weights of addresses. They are whole numbers of at most 100.')
    return isFine && lowest.some(({ weight }) => weight > 1) ? lowest : weights.map(([url]) => url)
  }

  /** Adds an upstream for a file that names none. */
  addUnknown(): string {
    const start = { line: 1, col: 1 }
    this.#into.changed(start, 'the file names no upstream; http://127.0.0.1:3000 stands in for it.')
    return this.add('app', ['http://127.0.0.1:3000'], start) ?? ''
  }

  #originOf(address: string, at: Origin): string | undefined {
    const url = URL.canParse(address) ? new URL(address) : undefined
    const isUsable =
      url !== undefined &&
      /^https?:$/.test(url.protocol) &&
      /^([a-z0-9._-]+|\[[0-9a-f:.]+\])$/.test(url.hostname)
    const shown = withoutSecret(address)
    if (!isUsable) {
      this.#into.leftOut(at, `"${shown}" is not an http:// or https:// address.`)
      return undefined
    }
    if (url.username !== '' || url.password !== '')
      this.#into.leftOut(at, `the user and password of ${url.origin}. Let the clients send them.`)
    if (url.pathname !== '/' || url.search !== '')
      this.#into.leftOut(at, `the path of ${shown}. ${PATH_STAYS}`)
    return url.origin
  }

  /** Sets limits and timeouts that hold for all of its routes. */
  set(name: string, settings: ImportedSettings): void {
    const entry = this.#upstreams.get(name)
    if (entry !== undefined) entry.settings = { ...entry.settings, ...settings }
  }

  /** Adds active checks, if gateway.yaml can have them; reports it otherwise. */
  check(name: string, { every, timeout, ...rest }: ImportedHealth, at: Origin): void {
    const entry = this.#upstreams.get(name)
    const health = { ...rest, every: durationText(every), timeout: durationText(timeout) }
    if (entry !== undefined && this.#into.isSound('health', health, at)) entry.health = health
  }

  document(): object {
    const entries = [...this.#upstreams].map(([name, { at, urls, settings, health }]) => {
      const [url] = urls
      const entry = {
        ...(urls.length === 1 ? { url } : { urls }),
        ...(health !== undefined && { health }),
        ...settingsText(settings),
      }
      return [name, new From(this.#into.placeOf(at), entry)]
    })
    return Object.fromEntries(entries)
  }
}

const commonDivisor = (a: number, b: number): number => (b > 0 ? commonDivisor(b, a % b) : a)

const durationText = (ms: number): string => (ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`)

/** Limits and timeouts as gateway.yaml has them. */
export function settingsText({ maxBody, timeouts = {} }: ImportedSettings): object {
  const texts = Object.entries(timeouts).map(([key, ms]) => [key, durationText(ms)])
  return {
    ...(maxBody !== undefined && { maxBody }),
    ...(texts.length > 0 && { timeouts: Object.fromEntries(texts) }),
  }
}

/** What becomes of other paths of an upstream. */
export const PATH_STAYS = 'Requests reach the upstream with the path they came with.'

/**
 * An address that may be shown: without the user and password before its host. A password with a slash does not parse
 * as part of an address, so everything before the last "@" is removed.
 */
export const withoutSecret = (text: string): string =>
  text.replace(/\S+/g, word => {
    const slashes = word.indexOf('//')
    const begin = !/^(?:https?:\/\/|unix:)/.test(word) ? 0 : slashes < 0 ? word.length : slashes + 2
    const end = word.lastIndexOf('@') + 1
    return end > begin ? word.slice(0, begin) + word.slice(end) : word
  })
