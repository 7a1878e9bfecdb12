/** What takes requests: this process, or a pool of workers. Reloads and the admin port see no difference. */
import type { StoredCertificate } from '../acme/folder.js'
import type { Credits } from '../admin/credit.js'
import type { Asked } from '../admin/explain.js'
import type { Inspected } from '../admin/inspect.js'
import type { HistoryOf } from '../admin/live.js'
import type { Configuration } from '../configured/load.js'
import { keyUses } from '../identify/api-keys/shared-keys.js'
import type { StepCounts } from '../observe/live/live.js'
import type { Metrics } from '../observe/metrics.js'
import type { UntrustedForwarding } from '../observe/untrusted-forwarding.js'
import { type OpenOverrides, openOverrides } from '../overrides/open.js'
import { certificateOf, nextCertificate } from './certificate.js'
import { type CoreOptions, openCore } from './core.js'
import type { InForce } from './generation.js'
import type { KeyUses } from './key-list.js'
import type { AnsweredParts } from './live/live-data.js'
import type { ProcessPart } from './live/part.js'
import type { BackendState } from './upstreams.js'

export interface HostOptions
  extends Omit<CoreOptions, 'certificate' | 'workers' | 'openRuntime' | 'reportForwarding'> {
  /** What was ordered before the start; undefined if nothing was. */
  readonly ordered: StoredCertificate | undefined
}

type MaybePromise<T> = T | Promise<T>

/** A process of a pool. */
export interface WorkerState {
  readonly pid: number
  readonly startedAt: Date
  /** False while it has not answered for a while. */
  readonly answers: boolean
}

export interface Host {
  /** The configuration in force. */
  readonly inForce: InForce
  /** The series of the process that serves the admin port. */
  readonly metrics: Metrics
  /** The series of all processes, in the Prometheus text format. */
  series(): Promise<string>
  readonly overrides: OpenOverrides
  /** Stores the usage that the processes have counted so far. Never rejects. */
  flushUsage(): Promise<unknown>
  /** Resolves when the last change of the overrides is in force in every process that answers in time. */
  overridesInForce(): Promise<unknown>
  readonly inspected: Inspected
  readonly credits: Credits
  explain(asked: Asked): Promise<object>
  live(): MaybePromise<AnsweredParts<ProcessPart>>
  /** When API keys were last used, as the processes that take requests have seen it. */
  keyUses(): MaybePromise<KeyUses>
  history(of: HistoryOf): MaybePromise<AnsweredParts<StepCounts | undefined>>
  backends(): MaybePromise<BackendState[]>
  untrustedForwarding(): MaybePromise<UntrustedForwarding | null>
  /** Undefined where this process takes the requests. */
  readonly workers: readonly WorkerState[] | undefined
  /** Why no request is accepted just now, as a sentence. */
  readonly trouble: string | undefined
  /** Activates a configuration everywhere in one step; rejects, with nothing changed, when that fails. */
  replace(loaded: Configuration): Promise<void>
  /** Serves a certificate that was ordered, from now on and in every process. */
  install(ordered: StoredCertificate): Promise<void>
  /** Starts to take requests; resolves to the address, with its scheme. */
  listen(): Promise<string>
  /** Lets requests finish up to the configured deadline, then closes everything. */
  drain(): Promise<void>
}

/** This process takes the requests. */
export async function processHost(options: HostOptions): Promise<Host> {
  const { first, log } = options
  const { listen } = first.config.gateway
  let certificate = certificateOf(listen, first.contents, options.ordered)
  let opened: OpenOverrides | undefined
  const core = await openCore({
    ...options,
    certificate,
    workers: 1,
    async openRuntime(unanswered) {
      opened = await openOverrides(first.config.gateway.redis, log, { unanswered })
      return opened.runtime
    },
  })
  const alone = <Part>(part: Part): AnsweredParts<Part> => ({ parts: [part], missing: [] })
  return {
    get inForce() {
      return core.inForce
    },
    metrics: core.metrics,
    series: () => core.metrics.text(),
    overrides: opened as OpenOverrides,
    overridesInForce: async () => undefined,
    inspected: core.inspected,
    credits: {
      ...core.credits,
      add: async (...asked) => (await core.credits.add(...asked)).entry,
    },
    explain: core.explain,
    flushUsage: core.flushUsage,
    live: () => alone(core.live()),
    keyUses,
    history: of => alone(core.history(of)),
    backends: () => core.inForce.backends,
    untrustedForwarding: core.untrustedForwarding,
    workers: undefined,
    trouble: undefined,
    async replace(loaded) {
      const { commit } = await core.prepare(loaded)
      certificate = nextCertificate(listen, loaded.contents, certificate, log)
      commit(certificate)
    },
    async install(ordered) {
      certificate = nextCertificate(listen, core.inForce.loaded.contents, certificate, log, ordered)
      if (certificate !== undefined) core.replaceCertificate(certificate)
    },
    listen: core.listen,
    drain: core.drain,
  }
}
