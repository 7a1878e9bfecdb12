/** One configuration in force. Requests that begin under it end under it, even if it has been replaced meanwhile. */

import type { Configuration } from '../configured/load.js'
import { PEEK_BYTES } from '../decide/body-kind.js'
import { answersCalls, countsCalls, needsBody } from '../decide/body-parts.js'
import type { Decider } from '../decide/decide.js'
import type { Counters } from '../decide/dry-run.js'
import { callsIn } from '../decide/json-rpc.js'
import { LastBytes } from '../decide/reserve/answer-tail.js'
import { watchesAnswer } from '../decide/reserve/reserved.js'
import { ownQuota } from '../explain/own-quota.js'
import { sendRejection } from '../forward/reject.js'
import type { UnknownHosts } from '../identify/unknown.js'
import { TrustedProxies } from '../listen/client.js'
import { Shares } from '../listen/client-shares.js'
import { createCredentials } from '../listen/credentials.js'
import { type FactsSettings, readFacts } from '../listen/facts.js'
import { type Memory, peekBody, readAhead, tapBody } from '../listen/peek-body.js'
import type { Crossings } from '../notify/crossings.js'
import { notifiesIn } from '../notify/notice.js'
import { type AccessLog, accessLog, type UnreadRequest } from '../observe/access-log.js'
import { decisionLog } from '../observe/decision-log.js'
import { Redactor } from '../observe/redact.js'
import type { Tracing } from '../observe/tracing/tracing.js'
import type { Runtime } from '../overrides/runtime.js'
import type { Walk } from '../pipeline/enter.js'
import type { PipelineParts, Upstream } from '../pipeline/parts.js'
import { createPipeline, type Pipeline } from '../pipeline/pipeline.js'
import type { Observer } from '../plugin.js'
import { Access } from '../policy/access.js'
import type { Log } from '../types.js'
import type { UsageCounter } from '../usage/counter.js'
import { upstreamSettings } from './upstream-settings.js'
import type { BackendState, EmbeddedService, Held, Upstreams } from './upstreams.js'

/** What outlives a configuration, so that a reload loses no counts. */
export interface Lasting {
  readonly decider: Decider
  /** The counters that it decides by. */
  readonly counters: Counters
  /** Looks at the verdicts of configurations with a `notify`. */
  readonly crossings: Pick<Crossings, 'watch'>
  /** Counts the requests of configurations with `usage`. */
  readonly usage: Pick<UsageCounter, 'finished'>
  readonly upstreams: Upstreams
  readonly unknownHosts: UnknownHosts
  /** Entries, modes and negotiated limits set on the admin port. */
  readonly runtime: Pick<Runtime, 'table' | 'inForce'>
  /** Called for every request, whatever its configuration. */
  readonly observers: readonly Observer[]
  /** Undefined when tracing is off. */
  readonly tracing: Tracing | undefined
  /** True while this process is overloaded and refuses new requests. */
  overloaded(): boolean
  readonly countWrongCredential: PipelineParts['countWrongCredential']
  /** Key of the hashes that replace personal data. */
  readonly secret: Buffer
  readonly log: Log
}

/** How long to wait for the part of a request's body that an enforced rule's key needs. */
const PEEK_MS = 5000

/** Memory in bytes for bodies that are waited for: of all clients, and of each. */
const bodyMemory = new Shares(32 * 1024 * 1024, 8 * 1024 * 1024)

const memoryOf = (client: string): Memory => ({
  take(bytes) {
    if (bodyMemory.capOf(client, bytes) !== undefined) return false
    bodyMemory.take(client, bytes)
    return true
  },
  giveBack: bytes => bodyMemory.giveBack(client, bytes),
})

/** The configuration in force, and since when. */
export interface InForce {
  /** As the files say it. */
  readonly loaded: Configuration
  /** With the modes and limits set on the admin port. */
  readonly current: Configuration
  readonly loadedAt: Date
}

export class Generation implements InForce {
  readonly loaded: Configuration
  readonly loadedAt = new Date()
  readonly pipeline: Pipeline
  readonly trustedProxies: TrustedProxies
  readonly #lasting: Lasting
  readonly #held: Held
  readonly #decisions: Observer
  readonly #access: AccessLog | undefined
  #requests = 0
  #isRetired = false

  /** `serviceOf` returns an embedded service by its name. */
  constructor(loaded: Configuration, lasting: Lasting, serviceOf: (name: string) => EmbeddedService) {
    const { gateway } = loaded.config
    this.loaded = loaded
    loaded.compiled.start()
    this.trustedProxies = new TrustedProxies(gateway.trustedProxies)
    this.#lasting = lasting
    this.#held = lasting.upstreams.hold(upstreamSettings(loaded, serviceOf))
    const redactor = new Redactor(lasting.secret, loaded.compiled.policy.words)
    this.#decisions = decisionLog(gateway.log.decisions, redactor, lasting.log)
    this.#access = accessLog(gateway.log.access, redactor, lasting.log)
    const { request, upgrade } = createPipeline(this.#parts(this.#held.byName, redactor))
    this.pipeline = {
      request: (req, res) => {
        this.#requests += 1
        request(req, res)
      },
      upgrade: (req, res, takeOver) => {
        this.#requests += 1
        upgrade(req, res, takeOver)
      },
    }
  }

  get current(): Configuration {
    return this.#lasting.runtime.inForce(this.loaded)
  }

  get backends(): BackendState[] {
    return this.#held.state()
  }

  /** The listener refused something before there was a request. */
  unread(refused: UnreadRequest): void {
    this.#access?.unread(refused)
  }

  /**
   * No more requests begin under this configuration. After the last one ends, whatever only this configuration uses is
   * released.
   */
  retire(): void {
    this.#isRetired = true
    if (this.#requests === 0) this.#end()
  }

  /** Releases everything but the upstreams, whose requests may still be cut. */
  async close(): Promise<void> {
    await Promise.all([this.#decisions.close?.(), this.#access?.close?.(), this.loaded.compiled.close()])
  }

  #end(): void {
    Promise.all([this.#held.release(), this.close()]).catch(error => {
      this.#lasting.log.error({ err: error }, 'a previous configuration was not released')
    })
  }

  #parts(upstreams: ReadonlyMap<string, Upstream>, redactor: Redactor): PipelineParts {
    const { counters, decider, observers, tracing, usage, log } = this.#lasting
    const { compiled, config } = this.loaded
    const settings = config.gateway
    const facts: FactsSettings = {
      trusted: this.trustedProxies,
      fingerprintHeaders: settings.fingerprintHeaders,
      credentialIn: createCredentials(settings.credentials),
    }
    const walk = this.#walks()
    return {
      log,
      get walk() {
        return walk()
      },
      upstreams,
      answers: settings,
      trace: tracing && (head => tracing.begin(head, redactor)),
      overloaded: this.#lasting.overloaded,
      readFacts: req => readFacts(req, facts),
      needsBody,
      countsCalls,
      answersCalls,
      callsIn,
      peekBody: (body, { network }) => peekBody(body, PEEK_BYTES, PEEK_MS, memoryOf(network)),
      readAhead: (body, { network }) => readAhead(body, PEEK_BYTES, memoryOf(network)),
      answerTail: matched => (watchesAnswer(matched) ? new LastBytes() : undefined),
      tapBody: (body, onPrefix) => tapBody(body, PEEK_BYTES, onPrefix),
      ...this.#decide(),
      messagesOf: request => decider.messagesOf(request, rule => this.current.compiled.policy.current(rule)),
      countWrongCredential: this.#lasting.countWrongCredential,
      quotaOf: routed => ownQuota(routed, this.current.compiled.policy, counters),
      sendRejection,
      finished: event => {
        for (const observer of observers) observer.finished(event)
        this.#decisions.finished(event)
        this.#access?.finished(event)
        if (settings.usage !== undefined) usage.finished(event, settings.usage.keep)
        compiled.observer.finished(event)
      },
      ended: () => {
        this.#requests -= 1
        if (this.#isRetired && this.#requests === 0) this.#end()
      },
    }
  }

  /** Verdicts are looked at only where somebody wants to be notified. */
  #decide(): Pick<PipelineParts, 'decide' | 'refuseUnread'> {
    const { decider, crossings } = this.#lasting
    const plain: Pick<PipelineParts, 'decide' | 'refuseUnread'> = {
      decide: request => decider.decide(request),
      refuseUnread: request => decider.refuseUnread(request),
    }
    if (!notifiesIn(this.loaded.config)) return plain
    return {
      decide: request => crossings.watch(plain.decide(request), request.project),
      refuseUnread: request => crossings.watch(plain.refuseUnread(request), request.project),
    }
  }

  /** What requests walk through; rebuilt when the admin port has changed a mode or a limit. */
  #walks(): () => Walk {
    const { unknownHosts, runtime } = this.#lasting
    const walkOf = ({ compiled }: Configuration) =>
      compiled.walk(unknownHosts, new Access(compiled.access, runtime))
    let of = this.current
    let walk = walkOf(of)
    return () => {
      const { current } = this
      if (current !== of) [of, walk] = [current, walkOf(current)]
      return walk
    }
  }
}
