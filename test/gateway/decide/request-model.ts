/**
 * The real path of a request between a scripted listener and a scripted upstream, to follow what happens to its slots.
 */
import { mock } from 'node:test'
import { Decider } from '../../../gateway/decide/decide.js'
import { slotReports } from '../../../gateway/decide/hold.js'
import { inFlight } from '../../../gateway/decide/in-flight.js'
import { NO_CALL } from '../../../gateway/decide/json-rpc.js'
import { Questions } from '../../../gateway/decide/question.js'
import { hashTag } from '../../../gateway/decide/redis/hash-slot.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import { type Answer, type Ask, type CounterStore, uncounted } from '../../../gateway/decide/store/store.js'
import type { Exchange } from '../../../gateway/forward/transport.js'
import {
  Fields,
  type IncomingRequest,
  type OutgoingResponse,
  type ResponseWatcher,
} from '../../../gateway/message.js'
import type { PipelineParts } from '../../../gateway/pipeline/parts.js'
import { createPipeline } from '../../../gateway/pipeline/pipeline.js'
import { Access, NO_ACCESS } from '../../../gateway/policy/access.js'
import type { Facts, Rule } from '../../../gateway/types.js'

/** In ms: longer than a script lasts, unless it has the step `hold`. Timers are mocked. */
export const HOUR = 3_600_000

class SteeredResponse {
  status = 0
  closed = false
  readonly #watchers: ResponseWatcher[] = []

  watch(watcher: ResponseWatcher): void {
    this.#watchers.push(watcher)
  }

  cut(): void {
    if (this.closed) return
    this.closed = true
    for (const watcher of this.#watchers) watcher.onClose?.()
  }
}

/** One request of the model, controlled by the script. */
export class Steered {
  readonly res = new SteeredResponse()
  /** Settles the pending decision. */
  decided: ((counted: boolean) => void) | undefined
  exchange: Exchange | undefined
  /** Callbacks for the loss of a slot in the store. */
  lost: (() => void)[] = []
  ended = false
}

/** What may happen to a request, in any order. */
export const STEPS = ['decide', 'be away', 'open', 'answer', 'end', 'fail', 'leave', 'lose', 'hold'] as const
export type Step = (typeof STEPS)[number]

/** Runs requests on the real path between a scripted listener and a scripted upstream. */
export class Model {
  readonly requests: Steered[] = []
  readonly held = new Map<string, number>()
  readonly releases: number[] = []
  readonly warnings: object[] = []
  taken = 0
  readonly #memory = new MemoryStore(() => 0)
  readonly #rules: readonly Rule[]
  readonly #remote: boolean
  #under: Steered | undefined
  #throws = false

  constructor(rules: readonly Rule[], remote: boolean) {
    this.#rules = rules
    this.#remote = remote
  }

  readonly #store: CounterStore = {
    take: asks => {
      const steered = this.#under as Steered
      const answers = () => this.#counted(asks, steered)
      if (!this.#remote) return answers()
      return new Promise(resolve => {
        const before = steered.decided
        steered.decided = counted => {
          before?.(counted)
          resolve(counted ? answers() : asks.map(unavailable))
        }
      })
    },
    // As on a Cluster, where keys with other hash tags are on other nodes.
    rides: (observed, [enforced]) => hashTag(observed.key) === hashTag(enforced?.key ?? ''),
    peek: asks => this.#memory.peek(asks),
    giveBack: (asks, answers) => this.#memory.giveBack(asks, answers),
    charge: charges => this.#memory.charge(charges),
    close: async () => {},
  }

  #counted(asks: readonly Ask[], steered: Steered): Answer[] {
    return this.#memory.take(asks).map(answer => {
      const { release } = answer
      if (release === undefined) return answer
      const number = this.taken++
      this.releases[number] = 0
      return {
        ...answer,
        release: () => {
          this.releases[number] = (this.releases[number] as number) + 1
          release()
        },
        onLost: (listener: () => void) => steered.lost.push(listener),
      }
    })
  }

  readonly #log = { debug() {}, info() {}, error() {}, warn: (fields: object) => this.warnings.push(fields) }
  readonly #decider = new Decider({
    questions: new Questions(
      new Map([
        [
          'in-flight',
          inFlight.create({ log: this.#log, projects: [], plans: [], environments: [], folder: '.' }),
        ],
      ]),
      Buffer.from('k'),
      this.#log,
    ),
    store: this.#store,
    now: () => 0,
    onSlots: slotReports(
      (rule, change) => this.held.set(rule, (this.held.get(rule) ?? 0) + change),
      this.#log,
    ),
    onLost() {},
  })
  readonly #upstream = {
    name: 'app',
    forward: (exchange: Exchange) => this.#begin(exchange),
    upgrade: (exchange: Exchange) => this.#begin(exchange),
  }
  readonly #pipeline = createPipeline({
    log: this.#log,
    overloaded: () => false,
    walk: {
      access: new Access(NO_ACCESS),
      policy: {
        revision: '',
        routes: { routeFor: () => ({ upstream: 'app', auth: 'optional', scopes: [] }) },
        readFor: (facts: Facts) => facts,
        match: () => this.#rules.map(rule => ({ rule, route: '/a' })),
      } as unknown as PipelineParts['walk']['policy'],
      identify: () => ({
        project: { id: 'acme', plan: 'growth', environment: 'production' },
        identifier: 'host',
        credential: 'none',
        wrong: undefined,
        stripped: [],
      }),
      challenges: [],
    },
    upstreams: new Map([['app', this.#upstream]]),
    answers: { rateLimitFields: 'both', cors: 'none', retryJitter: 0 },
    readFacts: () =>
      ({
        id: String(this.requests.length),
        method: 'POST',
        path: '/a',
        header: () => undefined,
      }) as Partial<Facts> as Facts,
    needsBody: () => false,
    countsCalls: () => false,
    answersCalls: () => false,
    callsIn: () => NO_CALL,
    answerTail: () => undefined,
    decide: request => this.#decider.decide(request),
    messagesOf: request => this.#decider.messagesOf(request, rule => rule),
    refuseUnread: request => this.#decider.refuseUnread(request),
    countWrongCredential: async () => undefined,
    quotaOf: async () => ({}),
    sendRejection: (_req, res) => res.cut(),
    finished() {},
    ended() {},
  } satisfies Omit<PipelineParts, 'peekBody' | 'readAhead' | 'tapBody'> as unknown as PipelineParts)

  #begin(exchange: Exchange): void {
    if (this.#throws) throw new Error('forward')
    const steered = this.requests.find(
      ({ res }) => (exchange as Exchange).res === (res as unknown),
    ) as Steered
    steered.exchange = exchange
    if (steered.res.closed) this.#end(steered)
  }

  #end(steered: Steered): void {
    if (steered.exchange === undefined || steered.ended) return
    steered.ended = true
    steered.exchange.onUpstreamEnd()
  }

  async begin(how: 'request' | 'upgrade' | 'throw'): Promise<void> {
    const steered = new Steered()
    this.requests.push(steered)
    this.#under = steered
    this.#throws = how === 'throw'
    const res = steered.res as unknown as OutgoingResponse
    const req = { method: 'POST' } as IncomingRequest
    if (how === 'upgrade') this.#pipeline.upgrade(req, res, () => undefined as never)
    else this.#pipeline.request(req, res)
    await settled()
  }

  /** Does what a transport or a listener may do to a request; steps that are impossible at this point do nothing. */
  async step(steered: Steered, step: Step): Promise<void> {
    const { exchange, res } = steered
    if (step === 'decide' || step === 'be away') {
      steered.decided?.(step === 'decide')
      steered.decided = undefined
    } else if (step === 'leave') {
      res.cut()
      // A transport ends an exchange at once when it holds no slot.
      if (exchange !== undefined && !('keepUpstream' in exchange && exchange.keepUpstream)) this.#end(steered)
    } else if (step === 'hold') mock.timers.tick(HOUR)
    else if (step === 'lose') for (const tell of steered.lost.splice(0)) tell()
    else if (exchange !== undefined && !steered.ended) {
      if (step === 'open' && 'onAnswer' in exchange) exchange.onAnswer(101, new Fields([], []))
      else if (step === 'answer') res.status = 200
      else if (step === 'end') this.#end(steered)
      else if (step === 'fail' && res.status === 0) {
        exchange.fail('upstream-timeout')
        this.#end(steered)
      }
    }
    await settled()
  }

  async endAll(): Promise<void> {
    for (const steered of this.requests) {
      while (steered.decided !== undefined) await this.step(steered, 'decide')
      await this.step(steered, 'leave')
      await this.step(steered, 'end')
    }
  }

  get inFlight(): number {
    return [...this.held.values()].reduce((sum, held) => sum + held, 0)
  }
}

function unavailable(ask: Ask): Answer {
  return { granted: false, unavailable: true, store: 'none', counts: uncounted(ask) }
}

const settled = () => new Promise(resolve => setImmediate(resolve))
