/**
 * Connections to the upstreams: opened when a configuration names an upstream, shared by all that do, closed after the
 * last.
 */
import { ConfigFiles } from '../../config/files.js'
import { addressesOf } from '../../config/schema/upstream.js'
import type { Configuration } from '../configured/load.js'
import type { BackendEvents, Fault } from '../forward/backend.js'
import { Backends } from '../forward/backends.js'
import { causeOf } from '../forward/failure.js'
import { createHttpTransport } from '../forward/proxy.js'
import type { UpstreamSettings } from '../forward/transport.js'
import { createUpgradeTransport } from '../forward/upgrade.js'
import { mostStalls, Stalls } from '../http1/stalls.js'
import type { Upstream } from '../pipeline/parts.js'
import type { Log } from '../types.js'
import { callerFields } from './caller-fields.js'
import { ServiceFailure } from './reload.js'

interface Opened {
  readonly upstream: Upstream
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
  /** Requests in progress or waiting. */
  readonly requests: number
  readonly webSockets: number
}

/** Upstreams by name, until they are released. */
export type Held = ReturnType<Upstreams['hold']>

export class Upstreams {
  /** By their settings as text: an upstream that a reload does not change keeps its connections. */
  readonly #opened = new Map<string, Opened>()
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
      const opened = this.#opened.get(text) ?? open(settings, this.#log, this.#stalls)
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

  /**
   * The addresses of all configurations that still serve requests; `ejected` is undefined for an upstream's only
   * address.
   */
  load(): (Omit<BackendState, 'ejected'> & { readonly ejected: boolean | undefined })[] {
    return [...this.#opened.values()].map(stateOf).flatMap(states => {
      const several = states.length > 1
      return states.map(state => ({ ...state, ejected: several ? state.ejected : undefined }))
    })
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
  return [...backends].map(({ origin, ejected, fault, requests, tunnels }) => ({
    upstream: name,
    backend: origin.origin,
    ejected,
    ...(fault && { fault }),
    requests,
    webSockets: tunnels,
  }))
}

function open(settings: UpstreamSettings, log: Log, stalls: Stalls): Opened {
  const { name } = settings
  const backends = new Backends(settings, backendEvents(name, log))
  const http = createHttpTransport(settings, backends, stalls)
  const upgrades = createUpgradeTransport(settings, backends)
  return {
    upstream: {
      name,
      forward: exchange => http.forward(exchange),
      upgrade: (exchange, takeOver) => upgrades.upgrade(exchange, takeOver),
    },
    backends,
    holders: 0,
    goAway: () => upgrades.goAway(),
    async close() {
      upgrades.close()
      backends.close()
    },
  }
}

function backendEvents(upstream: string, log: Log): BackendEvents {
  const unreachable = unreachableLog(upstream, log)
  return {
    unreachable: (_backend, error) => unreachable(error),
    ejected({ origin: { origin: backend } }, error) {
      log.warn(
        { upstream, backend, reason: causeOf(error) },
        'backend left out until it answers a trial request',
      )
    },
    returned({ origin: { origin: backend } }) {
      log.info({ upstream, backend }, 'backend answers again')
    },
  }
}

const REPEAT_MS = 10_000

/**
 * Logs a failure unless one with the same reason was logged in the last ten seconds: an outage fails every request.
 */
function unreachableLog(upstream: string, log: Log): (error: Error) => void {
  /** By reason. Reasons name addresses, so each address of the upstream has its own. */
  const silentUntil = new Map<string, number>()
  return error => {
    const { code } = error as NodeJS.ErrnoException
    const reason = causeOf(error)
    const now = performance.now()
    for (const [reported, until] of silentUntil) if (until <= now) silentUntil.delete(reported)
    if (silentUntil.has(reason)) return
    silentUntil.set(reason, now + REPEAT_MS)
    log.warn({ upstream, code, reason }, 'upstream unreachable')
  }
}

const EMBEDDED_TIMEOUTS = { connectMs: 2000, headMs: 30_000, idleMs: 60_000, upgradeIdleMs: 3_600_000 }

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

/** The settings of every upstream; `serviceOf` returns an embedded service by its name. */
export function upstreamSettings(
  { config, contents }: Pick<Configuration, 'config' | 'contents'>,
  serviceOf: (name: string) => EmbeddedService,
): UpstreamSettings[] {
  const { upstreams, fingerprintHeaders } = config.gateway
  // Not from the disk: a worker may start when a file is gone.
  const files = new ConfigFiles(contents)
  const { proxyHeaders, countedHeaders } = callerFields(config)
  const headers = { fingerprintHeaders, proxyHeaders, countedHeaders }
  return Object.entries(upstreams).map(([name, written]): UpstreamSettings => {
    if ('embedded' in written) {
      const { url, secret } = serviceOf(written.embedded)
      return {
        name,
        urls: [url],

        timeouts: EMBEDDED_TIMEOUTS,
        service: { secret },
        ...headers,
      }
    }
    const { ca, protocol, connections, maxBody, methodOverride, timeouts, secret } = written
    return {
      name,
      urls: addressesOf(written),
      ...('urls' in written && { balance: written.balance, slowStartMs: written.slowStart }),
      ca: ca === undefined ? undefined : authorityIn(files, ca),
      protocol,
      connections,
      maxBody,
      methodOverride,
      timeouts: timeoutsOf(timeouts),
      // How a service knows this gateway.
      service: secret === undefined ? undefined : { secret },
      ...headers,
    }
  })
}

function authorityIn(files: ConfigFiles, file: string): string {
  const content = files.text(file)
  if ('fault' in content) throw new Error(`${file}: ${content.fault}`)
  return content.text
}

function timeoutsOf({
  connect,
  head,
  idle,
  upgradeIdle,
}: Record<'connect' | 'head' | 'idle' | 'upgradeIdle', number>) {
  return { connectMs: connect, headMs: head, idleMs: idle, upgradeIdleMs: upgradeIdle }
}
