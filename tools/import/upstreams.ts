/** The upstreams of an imported configuration. */
import type { Migration } from './migration.js'
import type { Origin, UpstreamSettings } from './parts.js'
import { withoutSecret } from './without-secret.js'
import { From } from './yaml-text.js'

interface Entry {
  readonly at: Origin
  readonly origins: readonly string[]
  settings: UpstreamSettings | undefined
}

export class Upstreams {
  readonly #into: Migration
  readonly #entries = new Map<string, Entry>()

  constructor(into: Migration) {
    this.#into = into
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0
  }

  get first(): string {
    return this.#entries.keys().next().value ?? ''
  }

  /** Adds an upstream by its addresses and returns its name; undefined when none can be used. */
  add(name: string, addresses: readonly string[], at: Origin): string | undefined {
    const origins = [...new Set(addresses.flatMap(address => this.#originOf(address, at)))]
    if (origins.length === 0) return undefined
    if (origins.length > 64)
      this.#into.leftOut(at, 'the addresses after the 64th. An upstream has at most 64.')
    const unique = this.#into.nameFor('upstream', name.replace(/^.*@/, ''))
    this.#entries.set(unique, { at, origins: origins.slice(0, 64), settings: undefined })
    return unique
  }

  #originOf(address: string, at: Origin): string[] {
    const url = URL.canParse(address) ? new URL(address) : undefined
    if (
      url === undefined ||
      !/^https?:$/.test(url.protocol) ||
      !/^([a-z0-9._-]+|\[[0-9a-f:.]+\])$/.test(url.hostname)
    ) {
      this.#into.leftOut(at, `"${withoutSecret(address)}" is not an http:// or https:// address.`)
      return []
    }
    if (url.username !== '' || url.password !== '') {
      this.#into.leftOut(at, `the user and password of ${url.origin}. Let the clients send them.`)
    }
    if (url.pathname !== '/' || url.search !== '') {
      this.#into.leftOut(
        at,
        `the path of ${withoutSecret(address)}. Requests reach the upstream with the path they came with.`,
      )
    }
    return [url.origin]
  }

  /** Sets limits and timeouts; where its routes differ, the smallest body and the longest times hold. */
  set(name: string, settings: UpstreamSettings, at: Origin): void {
    const entry = this.#entries.get(name)
    if (entry === undefined) return
    const present = entry.settings
    if (present === undefined) {
      entry.settings = settings
      return
    }
    if (JSON.stringify(present) !== JSON.stringify(settings)) {
      this.#into.changedOnce(
        at,
        `"${name}" has one maxBody and one set of timeouts, where these locations differ: the smallest body and the longest times hold for all.`,
      )
    }
    const times = [present.timeouts ?? {}, settings.timeouts ?? {}] as Record<string, number>[]
    const keys = Object.keys({ ...times[0], ...times[1] })
    const bodies = [present.maxBody, settings.maxBody].filter(one => one !== undefined)
    entry.settings = {
      ...(bodies.length > 0 && { maxBody: Math.min(...bodies) }),
      ...(keys.length > 0 && {
        timeouts: Object.fromEntries(keys.map(key => [key, Math.max(...times.map(one => one[key] ?? 0))])),
      }),
    }
  }

  /** Sets the largest body of an upstream. */
  limitBody(name: string, maxBody: number): void {
    const entry = this.#entries.get(name)
    if (entry !== undefined) entry.settings = { ...entry.settings, maxBody }
  }

  document(): object {
    return Object.fromEntries(
      [...this.#entries].map(([name, { at, origins, settings = {} }]) => {
        const [url] = origins
        const timeouts = Object.entries(settings.timeouts ?? {}).map(([key, ms]) => [key, durationText(ms)])
        const entry = {
          ...(origins.length === 1 ? { url } : { urls: origins }),
          ...(settings.maxBody !== undefined && { maxBody: settings.maxBody }),
          ...(timeouts.length > 0 && { timeouts: Object.fromEntries(timeouts) }),
        }
        return [name, new From(this.#into.placeOf(at), entry)]
      }),
    )
  }
}

const durationText = (ms: number): string => (ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`)
