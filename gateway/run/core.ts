/** Assembles what takes requests and counts them: a gateway without its admin port. */
import type { Asked } from '../admin/explain.js'
import type { HistoryOf } from '../admin/live.js'
import type { Configuration } from '../configured/load.js'
import { createLimiters, toolsOf } from '../configured/plugins.js'
import { Decider } from '../decide/decide.js'
import { Denials } from '../decide/denials.js'
import { HeldSlots } from '../decide/held-slots.js'
import { slotReports } from '../decide/hold.js'
import { Questions } from '../decide/question.js'
import { openStore } from '../decide/store/open.js'
import { WaitQueues } from '../decide/wait/wait-queues.js'
import { CATALOGUE } from '../errors.js'
import { creditsIn, type ProcessCredits } from '../explain/credit.js'
import { explain } from '../explain/explain.js'
import { type Inspection, inspect } from '../explain/inspect.js'
import { UnknownHosts } from '../identify/unknown.js'
import type { CertificatePair } from '../listen/certificate.js'
import { clientAddress, networkOf } from '../listen/client.js'
import { LoopDelay } from '../listen/loop-delay.js'
import { Crossings } from '../notify/crossings.js'
import type { Notifications } from '../notify/notifications.js'
import { Live, type StepCounts } from '../observe/live/live.js'
import { boundedLog } from '../observe/log-limits.js'
import { Metrics } from '../observe/metrics.js'
import { Redactor } from '../observe/redact.js'
import { ForwardingWatch, type UntrustedForwarding, warnOf } from '../observe/untrusted-forwarding.js'
import { watchVitals } from '../observe/watched.js'
import type { Runtime } from '../overrides/runtime.js'
import type { Log } from '../types.js'
import { UsageCounter } from '../usage/counter.js'
import type { UsageStore } from '../usage/store.js'
import { Generation, type InForce, type Lasting } from './generation.js'
import { warnOfLifetimes } from './lifetime-warning.js'
import { type ProcessPart, partOf } from './live/part.js'
import { openTracing } from './open-tracing.js'
import { openPorts } from './ports.js'
import { type BackendState, type EmbeddedService, startEmbedded, Upstreams } from './upstreams.js'
import { version } from './version.js'

export interface CoreOptions {
  /** The configuration to start with. */
  readonly first: Configuration
  /** The certificate in force; undefined without TLS, and while none was issued. */
  readonly certificate: CertificatePair | undefined
  /** An embedded service; starts it when asked for the first time. */
  embedded(name: string): Promise<EmbeddedService>
  /** Key of the hashes that replace personal data. */
  readonly secret: Buffer
  /** Number of processes that take requests of this gateway. */
  readonly workers: number
  /** Where other processes of the gateway report untrusted forwarding too; default: the log. */
  readonly reportForwarding?: (seen: UntrustedForwarding) => void
  /** Counts a wrong credential; the seconds that its sender has to wait. Never rejects. */
  readonly countWrongCredential: Lasting['countWrongCredential']
  /** Where usage is stored. */
  readonly usageStore: UsageStore
  /** Claims and sends notifications. */
  readonly notifications: Notifications
  /** The overrides of this process; `unanswered` is to be called for each look at Redis that fails. */
  openRuntime(unanswered: () => void): Promise<Runtime>
  readonly log: Log
}

export interface Core {
  readonly metrics: Metrics
  /** The live data of this process. */
  live(): ProcessPart
  history(of: HistoryOf): StepCounts | undefined
  untrustedForwarding(): UntrustedForwarding | null
  readonly inForce: InForce & { readonly backends: BackendState[] }
  /** Answers `POST /explain`. */
  explain(asked: Asked): Promise<object>
  readonly inspected: Inspection
  readonly credits: ProcessCredits
  /** Deletes the counts of a key; rejects when Redis cannot be reached. */
  forget(key: string): Promise<void>
  /** Stores the usage counted so far. Never rejects. */
  flushUsage(): Promise<void>
  /** Forgets that a key was refused, so that the store is asked again. */
  forgetRefusals(key: string): void
  /** Opens what a configuration needs. Rejects, without having changed anything, when that fails. */
  prepare(loaded: Configuration): Promise<Prepared>
  /** For new connections. */
  replaceCertificate(certificate: CertificatePair): void
  /** Starts listening; resolves to the address, with its scheme. */
  listen(): Promise<string>
  /** Stops listening, lets requests finish up to the configured deadline, then closes everything. */
  drain(): Promise<void>
}

/** A configuration that is ready to be activated. */
export interface Prepared {
  /** Activates it with the certificate in force by then, in one step that cannot fail. */
  commit(certificate: CertificatePair | undefined): void
  /** Releases it unused. */
  discard(): void
}

/** Opens everything but the listener; the counter store may be unavailable. */
export async function openCore(options: CoreOptions): Promise<Core> {
  const { first, certificate, workers, log } = options
  const { listen, redis, store: storeSettings } = first.config.gateway
  const metrics = new Metrics(version())
  const tracing = await openTracing(first.config.gateway.tracing, log)
  const redactor = new Redactor(options.secret, new Set())
  const live = new Live({ decisions: metrics.decisions, redactor }).start()
  let storeState = { away: false, since: new Date() }
  const instances = storeSettings.instances * workers
  let suspect = (): void => {}
  const [{ store, forget, ...opened }, runtime] = await Promise.all([
    openStore({ redis, ...storeSettings, instances }, log, {
      called: ms => metrics.storeCalled(ms),
      failed: op => metrics.storeError(op),
      late: () => metrics.storeLate(),
      awayChanged(away) {
        if (away !== storeState.away) storeState = { away, since: new Date() }
        metrics.fallbackActive(away)
      },
    }),
    // Looks every second on a connection of its own: one that silently drops data is never closed by its peer.
    options.openRuntime(() => suspect()),
  ])
  suspect = opened.suspect
  // Limiters outlive reloads, like the counts they are asked about.
  const limiters = createLimiters(first, toolsOf(first.config, log))
  const faultLog = boundedLog(log)
  const upstreams = new Upstreams(log)
  const loopDelay = new LoopDelay({
    limitMs: listen.maxEventLoopDelay,
    changed: (overloaded, delayMs) => reportOverload(log, overloaded, delayMs),
  }).start()
  const held = new HeldSlots()
  const forwarding = new ForwardingWatch(options.reportForwarding ?? warnOf(log), () =>
    metrics.untrustedForwarding(),
  )
  const now = () => performance.now()
  const counters = {
    questions: new Questions(limiters, options.secret, faultLog),
    store,
    now,
    denials: new Denials(now),
  }
  const crossings = new Crossings({ notifications: options.notifications, shown: redactor })
  const usage = new UsageCounter(options.usageStore, log)
  const queues = new WaitQueues({
    now,
    after,
    onWaiting: (rule, change) => metrics.waiting(rule, change),
    onWaited: (rule, result) => metrics.waited(rule, result),
  })
  const lasting: Lasting = {
    usage,
    counters,
    crossings,
    decider: new Decider({
      ...counters,
      queues,
      onSlots: held.noting(slotReports((rule, change) => metrics.inflight(rule, change), log)),
      onMessage: (outcome, project) => {
        metrics.decided(outcome, project)
        crossings.look(outcome, project)
      },
      onLost: error => log.error({ err: error }, 'a rule was not counted'),
    }),
    upstreams,
    unknownHosts: new UnknownHosts(),
    runtime,
    observers: [metrics.observer(), live.observer(), forwarding.observer()],
    tracing,
    overloaded: () => loopDelay.overloaded,
    countWrongCredential: options.countWrongCredential,
    secret: options.secret,
    log,
  }
  let inForce = await openGeneration(first, lasting, options)
  warnOfLifetimes(first, log)
  const ports = openPorts({
    listen,
    certificate,
    workers,
    handlers: {
      request: (req, res) => inForce.pipeline.request(req, res),
      upgrade: (req, res, takeOver) => inForce.pipeline.upgrade(req, res, takeOver),
      refused(code, id, peer) {
        metrics.refusedUnread(CATALOGUE[code].status)
        const network = networkOf(clientAddress(peer, undefined, inForce.trustedProxies).address)
        inForce.unread({ id, code, network, at: Date.now() })
      },
      failed: error => log.error({ err: error }, 'a connection was cut'),
      flooded: flood => metrics.flooded(flood),
    },
    trustedProxies: () => inForce.trustedProxies,
    turnedAway: cap => metrics.turnedAway(cap),
    log,
  })
  watchVitals(metrics.series, {
    connections: () => ports.connections,
    loopDelay,
    backends: () => upstreams.load(),
    checks: () => upstreams.checks(),
    retries: () => upstreams.retries(),
  })
  const forgetRefusals = (key: string) => lasting.decider.forget(key)
  const forgetCounter = async (key: string) => {
    await forget(key)
    forgetRefusals(key)
  }

  return {
    metrics,
    live: partOf({
      live,
      held,
      queues,
      loopDelay,
      forwarding,
      backends: () => inForce.backends,
      store: () => storeState,
    }),
    untrustedForwarding: () => forwarding.report(),
    history: of => live.history(of),
    get inForce() {
      return inForce
    },
    async explain(asked) {
      const { unknownHosts } = lasting
      return explain(asked, { loaded: inForce.current, counters, unknownHosts, runtime, live: true })
    },
    inspected: inspect({
      loaded: () => inForce.current,
      counters,
      held,
      forget: forgetCounter,
      journal: runtime.journal,
      shownAs: project => redactor.project(project),
      log,
    }),
    credits: creditsIn({
      loaded: () => inForce.current,
      counters,
      store: opened.credit,
      forgetRefusals,
      log,
    }),
    forget: forgetCounter,
    flushUsage: () => usage.flush(),
    forgetRefusals,
    async prepare(loaded) {
      const next = await openGeneration(loaded, lasting, options)
      return {
        commit(certificate) {
          inForce.retire()
          inForce = next
          warnOfLifetimes(loaded, log)
          if (certificate !== undefined) ports.replaceCertificate(certificate)
        },
        discard: () => next.retire(),
      }
    },
    replaceCertificate: certificate => ports.replaceCertificate(certificate),
    listen: () => ports.start(),
    async drain() {
      upstreams.goAway()
      await ports.drain(inForce.loaded.config.gateway.drain)
      await upstreams.close()
      await inForce.close()
      await crossings.idle()
      await usage.close()
      await tracing?.close()
      await Promise.all([...limiters.values()].map(limiter => limiter.close?.()))
      await store.close()
      loopDelay.stop()
      live.stop()
    },
  }
}

/** Calls `call` after `ms`, unless what it returns is called before. */
function after(ms: number, call: () => void): () => void {
  const timer = setTimeout(call, ms)
  return () => clearTimeout(timer)
}

function reportOverload(log: Log, overloaded: boolean, delayMs: number): void {
  if (overloaded) log.warn({ delayMs: Math.round(delayMs) }, 'Overloaded: new requests get 503')
  else log.info({}, 'No longer overloaded')
}

async function openGeneration(
  loaded: Configuration,
  lasting: Lasting,
  { embedded }: CoreOptions,
): Promise<Generation> {
  const services = await startEmbedded(loaded, embedded)
  return new Generation(loaded, lasting, name => services.get(name) as EmbeddedService)
}
