/** Joins the rooms into one running gateway: start, reload and drain. */
import { startAdmin } from './admin/server.js'
import { Decider } from './decide/decide.js'
import { HeldSlots } from './decide/held-slots.js'
import { slotReports } from './decide/hold.js'
import { Questions } from './decide/question.js'
import { SelfCounting } from './decide/self-counting.js'
import { openStore } from './decide/store/open.js'
import { CATALOGUE } from './errors.js'
import { explain } from './explain.js'
import { Generation, type Lasting } from './generation.js'
import { UnknownHosts } from './identify/identify.js'
import { inspect, serviceDocuments } from './inspect.js'
import { LoopDelay } from './listen/loop-delay.js'
import { createListener } from './listen/server.js'
import type { Loaded, Unloadable } from './load.js'
import { createLimiters } from './make-plugins.js'
import { boundedLog } from './observe/bounded-log.js'
import { Health } from './observe/health.js'
import { Metrics } from './observe/metrics.js'
import { Reloader, ServiceFailure } from './reload.js'
import { describeState } from './state.js'
import type { Log } from './types.js'
import { Upstreams } from './upstreams.js'

export interface GatewayOptions {
  /** The configuration to start with. */
  readonly first: Loaded
  /** Reads the configuration anew. */
  load(): Promise<Loaded | Unloadable>
  /** The address of an embedded service, which is started when it is first asked for. */
  embedded(name: string): Promise<string>
  /** Keys the hashes that stand for personal data. */
  readonly secret: Buffer
  readonly log: Log
}

export interface Gateway {
  readonly url: string
  readonly adminUrl: string
  /** Keeps reloads in their order, and knows how they ended. */
  readonly reloader: Pick<Reloader, 'reload' | 'sources'>
  /** Fails readyz, stops listening, lets requests finish up to the configured deadline, then closes everything. */
  drain(): Promise<void>
}

/** Starts listening; the counter store may be away, the addresses may not be taken. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { first, load, log } = options
  const { listen, admin: adminSettings, redis, store: storeSettings } = first.config.gateway
  const metrics = new Metrics()
  const health = new Health()
  const { store, counter, forget } = await openStore({ redis, ...storeSettings }, log, {
    failed: op => metrics.storeError(op),
    awayChanged: away => metrics.fallbackActive(away),
  })
  // They outlive reloads, because some of them hold counts.
  const limiters = createLimiters(first, { log, projects: first.config.projects, counter })
  const faultLog = boundedLog(log)
  const selfCounting = new SelfCounting(storeSettings.deadline, faultLog)
  const upstreams = new Upstreams(log)
  const loopDelay = new LoopDelay({
    limitMs: listen.maxEventLoopDelay,
    changed: (overloaded, delayMs) => tellOverload(log, overloaded, delayMs),
  }).start()
  const held = new HeldSlots()
  const counters = {
    questions: new Questions(limiters, options.secret, faultLog),
    store,
    selfCounting,
    now: () => performance.now(),
  }
  const lasting: Lasting = {
    decider: new Decider({
      ...counters,
      onSlots: held.noting(slotReports((rule, change) => metrics.inflight(rule, change), log)),
      onLost: error => log.error({ err: error }, 'a report-only rule was not counted'),
    }),
    upstreams,
    unknownHosts: new UnknownHosts(),
    observer: metrics.observer(),
    overloaded: () => loopDelay.overloaded,
    secret: options.secret,
    log,
  }
  let inForce = await openGeneration(first, lasting, options)
  const settings = () => inForce.loaded.config.gateway
  metrics.policyLoaded(first.compiled.revision)

  const reloader = new Reloader({
    first,
    load,
    async replace(loaded) {
      const next = await openGeneration(loaded, lasting, options)
      inForce.retire()
      inForce = next
      listener.reloadCertificate()
    },
    onResult(reloaded) {
      if (reloaded.result === 'loaded') metrics.policyLoaded(reloaded.revision)
      else metrics.policyRefused()
    },
    log,
  })
  const listener = createListener(
    {
      request: (req, res) => inForce.pipeline.request(req, res),
      upgrade: (req, res, socket, head) => inForce.pipeline.upgrade(req, res, socket, head),
      refused: code => metrics.refusedUnread(CATALOGUE[code].status),
      failed: error => log.error({ err: error }, 'a connection was cut'),
    },
    {
      ...listen,
      trustedProxies: () => inForce.trustedProxies,
      turnedAway: cap => metrics.turnedAway(cap),
    },
    listen.tls && { ...listen.tls, log },
  )
  metrics.watch({
    connections: () => listener.connections,
    loopDelay,
    backends: () => upstreams.ejectable(),
  })
  // The admin port answers before there is an address for data.
  let url = ''
  const admin = await startAdmin({
    ...adminSettings,
    health,
    metrics,
    log,
    state: () => describeState(inForce, reloader),
    reload: () => reloader.reload('admin'),
    explain: asked => {
      const { unknownHosts } = lasting
      return explain(asked, { loaded: inForce.loaded, counters, unknownHosts, live: true })
    },
    inspected: inspect({
      loaded: () => inForce.loaded,
      counters,
      held,
      async forget(key) {
        await forget(key)
        lasting.decider.forget(key)
      },
      log,
    }),
    documents: () => serviceDocuments(settings(), url),
  })
  const address = await listener.start(listen.host, listen.port)
  url = urlOf(address, listen.tls && 'https')
  health.ready()

  return {
    url,
    adminUrl: urlOf(admin),
    reloader,
    async drain() {
      health.draining()
      upstreams.goAway()
      await listener.drain(settings().drain)
      await upstreams.close()
      await inForce.close()
      await Promise.all([...limiters.values()].map(limiter => limiter.close?.()))
      await store.close()
      await admin.close()
      loopDelay.stop()
    },
  }
}

function tellOverload(log: Log, overloaded: boolean, delayMs: number): void {
  if (overloaded) log.warn({ delayMs: Math.round(delayMs) }, 'Overloaded: new requests get 503')
  else log.info({}, 'No longer overloaded')
}

/** Starts the embedded services that the configuration asks for and that do not run yet. */
async function openGeneration(
  loaded: Loaded,
  lasting: Lasting,
  { embedded }: GatewayOptions,
): Promise<Generation> {
  const addresses = new Map<string, string>()
  for (const [name, upstream] of Object.entries(loaded.config.gateway.upstreams)) {
    if (!('embedded' in upstream)) continue
    const address = await embedded(upstream.embedded).catch(error => {
      throw new ServiceFailure(name, error)
    })
    addresses.set(upstream.embedded, address)
  }
  return new Generation(loaded, lasting, service => addresses.get(service) as string)
}

function urlOf({ host, port }: { host: string; port: number }, scheme = 'http'): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}
