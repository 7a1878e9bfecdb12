/**
 * Connections to the upstreams: opened when a configuration names an upstream, shared by all that do, closed after the
 * last.
 */
import type { Configuration } from '../configured/load.js'
import { Backends } from '../forward/backends.js'
import { createHttpTransport } from '../forward/proxy.js'
import type { Fault } from '../forward/standing.js'
import type { UpstreamSettings } from '../forward/transport.js'
import { createUpgradeTransport } from '../forward/upgrade.js'
import { mostStalls, Stalls } from '../http1/stalls.js'
import type { Upstream } from '../pipeline/parts.js'
import type { Log } from '../types.js'
import { BackendCounts, backendEvents, type CheckCount, type RetryCount } from './backend-events.js'
import { ServiceFailure } from './reload.js'

interface Opened {
  readonly upstream: Upstream
  readonly settings: UpstreamSettings
  readonly backends: Backends
  holders: number
  /** Tells the clients of open WebSockets to go away. */
  goAway(): void
  close(): Promise<void>
}

/** Plain data. */
export interface BackendState {
  readonly upstream: string
  /** Scheme, host and port. */
  readonly backend: string
  /** True while it gets no requests because it does not answer. */
  readonly ejected: boolean
  /** Set while it cannot be connected to, and after several failures in a row. */
  readonly fault?: Fault
  /** Set while it fails its health checks. */
  readonly unhealthy?: Fault
  /** Set while its name cannot be resolved anew: the address is the last that is known. */
  readonly nameFault?: Fault
  /** Its name no longer has it: requests in progress end, and no more come. */
  readonly isLeaving?: boolean
  /** Requests in progress or waiting. */
  readonly requests: number
  readonly webSockets: number
}

/** Upstreams by name, until they are released. */
export type Held = ReturnType<Upstreams['hold']>

export class Upstreams {
  /** By their settings as text: an upstream that a reload does not change keeps its connections. */
  readonly #opened = new Map<string, Opened>()
  readonly #counts = new BackendCounts()
  readonly #log: Log
  readonly #stalls = new Stalls(mostStalls())

  constructor(log: Log) {
    this.#log = log
  }

  hold(all: readonly UpstreamSettings[]) {
    const byName = new Map<string, Upstream>()
    const held = new Map<string, Opened>()
    for (const settings of all) {
      const text = JSON.stringify(settings)
      const opened = this.#opened.get(text) ?? this.#open(settings)
      opened.holders += 1
      this.#opened.set(text, opened)
      held.set(text, opened)
      byName.set(settings.name, opened.upstream)
    }
    /** Closes those that no other configuration holds; no request may be using them, or begin to. */
    const release = async (): Promise<void> => {
      const closing: Promise<void>[] = []
      for (const [text, opened] of held) {
        opened.holders -= 1
        if (opened.holders === 0 && this.#opened.delete(text)) closing.push(opened.close())
      }
      held.clear()
      await Promise.all(closing)
    }
    return { byName, state: () => [...held.values()].flatMap(stateOf), release }
  }

  #open(settings: UpstreamSettings): Opened {
    const same = [...this.#opened.values()].filter(one => isReachedAlike(one.settings, settings))
    const backends = new Backends(
      settings,
      backendEvents(settings.name, this.#log, this.#counts),
      same.at(-1)?.backends,
    )
    return open(settings, backends, this.#stalls)
  }

  /**
   * The addresses of all configurations that still serve requests; `ejected` is undefined for an upstream's only
   * address.
   */
  load(): (Omit<BackendState, 'ejected'> & { readonly ejected: boolean | undefined })[] {
    return [...this.#opened.values()].map(stateOf).flatMap(states => {
      const several = states.filter(({ isLeaving }) => !isLeaving).length > 1
      return states.map(state => ({ ...state, ejected: several ? state.ejected : undefined }))
    })
  }

  /** Health checks so far of the addresses that are open. */
  checks(): readonly CheckCount[] {
    const open = new Set(this.load().map(({ upstream, backend }) => `${upstream} ${backend}`))
    return this.#counts.checks.list(({ upstream, backend }) => open.has(`${upstream} ${backend}`))
  }

  /** Retries so far to the upstreams that are open. */
  retries(): readonly RetryCount[] {
    const open = new Set(this.load().map(({ upstream }) => upstream))
    return this.#counts.retries.list(({ upstream }) => open.has(upstream))
  }

  /** Tells the clients of all open WebSockets to go away, since these connections would not end by themselves. */
  goAway(): void {
    for (const opened of this.#opened.values()) opened.goAway()
  }

  /** Closes all upstreams, whoever holds them, and cuts what is still in progress. */
  async close(): Promise<void> {
    const all = [...this.#opened.values()]
    this.#opened.clear()
    await Promise.all(all.map(opened => opened.close()))
  }
}

/** The state of each address of an upstream. */
function stateOf({ upstream: { name }, backends }: Opened): BackendState[] {
  return [...backends].map(backend => {
    const { address, ejected, fault, unhealthy, isLeaving, requests, tunnels } = backend
    const nameFault = backends.nameFaultOf(backend)
    return {
      upstream: name,
      backend: address,
      ejected,
      ...(fault && { fault }),
      ...(unhealthy && { unhealthy }),
      ...(nameFault && { nameFault }),
      ...(isLeaving && { isLeaving }),
      requests,
      webSockets: tunnels,
    }
  })
}

/** True if what is known of an address in one of them is true in the other. */
function isReachedAlike(one: UpstreamSettings, other: UpstreamSettings): boolean {
  return one.name === other.name && one.ca === other.ca && one.protocol === other.protocol
}

function open(settings: UpstreamSettings, backends: Backends, stalls: Stalls): Opened {
  const { name } = settings
  const http = createHttpTransport(settings, backends, stalls)
  const upgrades = createUpgradeTransport(settings, backends)
  return {
    upstream: {
      name,
      forward: exchange => http.forward(exchange),
      upgrade: (exchange, takeOver) => upgrades.upgrade(exchange, takeOver),
    },
    settings,
    backends,
    holders: 0,
    goAway: () => upgrades.goAway(),
    async close() {
      upgrades.close()
      backends.close()
    },
  }
}

/** An embedded service that runs. */
export interface EmbeddedService {
  readonly url: string
  /** Other processes of this machine reach its address too: it answers only requests with this secret. */
  readonly secret: string
}

/** Starts those embedded services of a configuration that do not run yet; returns all of them by name. */
export async function startEmbedded(
  { config }: Configuration,
  embedded: (name: string) => Promise<EmbeddedService>,
): Promise<ReadonlyMap<string, EmbeddedService>> {
  const services = new Map<string, EmbeddedService>()
  for (const [name, upstream] of Object.entries(config.gateway.upstreams)) {
    if (!('embedded' in upstream)) continue
    const service = await embedded(upstream.embedded).catch(error => {
      throw new ServiceFailure(name, error)
    })
    services.set(upstream.embedded, service)
  }
  return services
}
