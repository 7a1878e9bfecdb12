/** The upstreams of an imported configuration. */
import type { Origin } from './findings.js'
import type { Migration } from './migration.js'
import { From } from './yaml.js'

/** Limits and timeouts of an upstream; bytes, and times in milliseconds. */
export interface ImportedSettings {
  readonly maxBody?: number | undefined
  readonly timeouts?:
    | undefined
    | { readonly connect?: number; readonly head?: number; readonly idle?: number }
}

/** One of the addresses of an upstream. */
export interface WeightedAddress {
  readonly url: string
  readonly weight?: number
}

interface RouteSettings {
  readonly upstream?: string
  readonly settings?: ImportedSettings
}

interface ImportedUpstream {
  readonly at: Origin
  /** Addresses with their weights. */
  readonly origins: readonly (readonly [string, number])[]
  readonly health: object | undefined
  settings: ImportedSettings | undefined
}

const MOST_ADDRESSES = 64
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
  add(name: string, addresses: readonly WeightedAddress[], at: Origin, health?: object): string | undefined {
    const weights = new Map<string, number>()
    for (const { url, weight = 1 } of addresses)
      for (const origin of this.#originOf(url, at)) weights.set(origin, (weights.get(origin) ?? 0) + weight)
    const origins = [...weights].filter(([, weight]) => weight > 0)
    if (origins.length === 0) return undefined
    if (origins.length > MOST_ADDRESSES)
      this.#into.leftOut(at, 'the addresses after the 64th. An upstream has at most 64.')
    const unique = this.#into.nameFor('upstream', name.replace(/^.*@/, ''))
    this.#upstreams.set(unique, {
      at,
      origins: origins.slice(0, MOST_ADDRESSES),
      health,
      settings: undefined,
    })
    return unique
  }

  /** Adds an upstream for a file that names none. */
  addUnknown(): string {
    const start = { line: 1, col: 1 }
    this.#into.changed(start, 'the file names no upstream; http://127.0.0.1:3000 stands in for it.')
    return this.add('app', [{ url: 'http://127.0.0.1:3000' }], start) ?? ''
  }

  #originOf(address: string, at: Origin): string[] {
    const url = URL.canParse(address) ? new URL(address) : undefined
    const isUsable =
      url !== undefined &&
      /^https?:$/.test(url.protocol) &&
      /^([a-z0-9._-]+|\[[0-9a-f:.]+\])$/.test(url.hostname)
    const shown = withoutSecret(address)
    if (!isUsable) {
      this.#into.leftOut(at, `"${shown}" is not an http:// or https:// address.`)
      return []
    }
    if (url.username !== '' || url.password !== '')
      this.#into.leftOut(at, `the user and password of ${url.origin}. Let the clients send them.`)
    if (url.pathname !== '/' || url.search !== '')
      this.#into.leftOut(at, `the path of ${shown}. ${PATH_STAYS}`)
    return [url.origin]
  }

  /** Gives each upstream the largest body and the first timeouts of its routes; those that differ say so themselves. */
  settle(routes: readonly RouteSettings[]): void {
    for (const { upstream = '', settings = {} } of routes) {
      const entry = this.#upstreams.get(upstream)
      if (entry === undefined) continue
      const { maxBody, timeouts } = entry.settings ?? settings
      const bodies = [maxBody ?? Number.POSITIVE_INFINITY, settings.maxBody ?? Number.POSITIVE_INFINITY]
      const largest = Math.max(...bodies)
      entry.settings = { timeouts, maxBody: largest < Number.POSITIVE_INFINITY ? largest : undefined }
    }
  }

  /** What of the settings of a route its upstream does not say, as it is written. */
  differing({ upstream = '', settings: { maxBody, timeouts = {} } = {} }: RouteSettings): object {
    const { settings: shared = {} } = this.#upstreams.get(upstream) ?? {}
    const own = Object.entries(timeouts).filter(
      ([key, ms]) => ms !== shared.timeouts?.[key as keyof typeof timeouts],
    )
    return writtenSettings({
      maxBody: maxBody === shared.maxBody ? undefined : maxBody,
      timeouts: Object.fromEntries(own),
    })
  }

  document(): object {
    const entries = [...this.#upstreams].map(([name, { at, origins, health, settings = {} }]) => {
      const entry = { ...writtenAddresses(origins), health, ...writtenSettings(settings) }
      return [name, new From(this.#into.placeOf(at), entry)]
    })
    return Object.fromEntries(entries)
  }
}

const MOST_WEIGHT = 100

/** Weights in their smallest numbers, none above the most that there is. */
function writtenAddresses(origins: readonly (readonly [string, number])[]): object {
  const [[url] = ['']] = origins
  if (origins.length === 1) return { url }
  const weights = origins.map(([, weight]) => weight)
  const shared = weights.reduce((a, b) => divisor(a, b))
  const scale = Math.max(shared, Math.max(...weights) / MOST_WEIGHT)
  return {
    urls: origins.map(([url, weight]) => {
      const written = Math.max(1, Math.round(weight / scale))
      return written === 1 ? url : { url, weight: written }
    }),
  }
}

const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b))

function writtenSettings({ maxBody, timeouts = {} }: ImportedSettings): object {
  const times = Object.entries(timeouts).map(([key, ms]) => [key, durationText(ms)])
  return {
    ...(maxBody !== undefined && { maxBody }),
    ...(times.length > 0 && { timeouts: Object.fromEntries(times) }),
  }
}

export const durationText = (ms: number): string => (ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`)

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
