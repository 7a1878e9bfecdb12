/** One request on its way through the rooms: what is known of it, what it holds, and how it ends. */
import { randomUUID } from 'node:crypto'
import { type ErrorCode, GatewayError } from '../errors.js'
import { UNLIMITED } from '../forward/fields.js'
import type { Rejection } from '../forward/reject.js'
import type { Exchange } from '../forward/transport.js'
import type {
  Fields,
  IncomingBody,
  IncomingRequest,
  OutgoingResponse,
  ResponseWatcher,
  Takeover,
} from '../message.js'
import type { Ruling } from '../policy/access.js'
import type { AnswerFields, AnswerSource, Facts, Judgement, Matched, Project, Verdict } from '../types.js'
import { isExempt, judgementWith } from './access.js'
import { answer, refusal } from './answer.js'
import type { Entered } from './enter.js'
import type { Rooms, Upstream } from './pipeline.js'

const NO_FIELDS: AnswerFields = { get: () => undefined }

export class Passage implements Exchange, ResponseWatcher {
  readonly req: IncomingRequest
  readonly res: OutgoingResponse
  revision = ''
  matched: readonly Matched[] = []
  limiterUs = 0
  body: IncomingBody | undefined
  answerFields: readonly string[] = []
  /** Until the verdict is in: what a request that left before was charged is still to be told. */
  judged: Promise<void> | undefined
  readonly #rooms: Rooms
  readonly #startedAt = Date.now()
  readonly #start = performance.now()
  #source: AnswerSource = 'gateway'
  #facts: Facts | undefined
  #project: Project | undefined
  #upstream: Upstream | undefined
  #ruling: Ruling | undefined
  #verdict: Verdict | undefined
  #beside: Promise<Verdict> | undefined
  #ended = false
  /** What is yet to end: the answer, and the upstream's work once it has begun. */
  #pending = 1
  #working = false
  /** True once its connection has left HTTP: it ends with its tunnel. */
  #tunnels = false

  constructor(rooms: Rooms, req: IncomingRequest, res: OutgoingResponse) {
    this.#rooms = rooms
    this.req = req
    this.res = res
    res.watch(this)
  }

  /** The answer is over, or its client gone. */
  onClose(): void {
    if (!this.#tunnels) this.#finish()
  }

  /** How far it came; it may be refused there. */
  entered({ facts, project, upstream, matched, ruling }: Entered): void {
    this.#facts = facts
    this.#project = project
    this.#upstream = upstream === undefined ? undefined : this.#rooms.upstreams.get(upstream)
    this.matched = matched
    this.#ruling = ruling
  }

  get facts(): Facts {
    return this.#facts as Facts
  }
  set facts(facts: Facts) {
    this.#facts = facts
  }
  get project(): Project {
    return this.#project as Project
  }
  get upstream(): Upstream {
    return this.#upstream as Upstream
  }

  /** True while a slot is held, which maxHold may end before the request. */
  get keepUpstream(): boolean {
    return this.#verdict?.holdsSlot ?? false
  }

  /** Runs a step; what it throws becomes the answer. */
  attempt(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.abandon(error)
    }
  }

  /** The verdict is in; from here on the request may hold slots. Returns the refusal that it leads to, if any. */
  settle(verdict: Verdict): Rejection | undefined {
    this.#verdict = verdict
    this.judged = undefined
    const { fields, rejection } = answer(verdict, this.facts, this.#rooms.answers)
    this.answerFields = isExempt(this.#ruling) ? UNLIMITED : fields
    return rejection
  }

  /** On to the upstream: from here on the answer is its own, unless it fails. */
  forward(): void {
    this.#source = 'upstream'
    this.#work()
    this.upstream.forward(this)
  }

  upgrade(takeOver: () => Takeover): void {
    this.#work()
    const switchOver = (): Takeover => {
      this.#tunnels = true
      return takeOver()
    }
    this.upstream.upgrade(Object.assign(this, { takeOver: switchOver }))
  }

  /** A verdict of report-only rules, reached while the request is already forwarded. */
  watch(decide: () => Promise<Verdict>): void {
    this.#beside = decide().then(verdict => {
      if (this.#ended) verdict.release()
      return verdict
    })
    this.#beside.catch(error => this.#rooms.log.error({ err: error, id: this.facts.id }, 'report-only'))
  }

  /** Upstream work has ended, or will not begin: every slot goes back. */
  onUpstreamEnd(): void {
    this.#ended = true
    // Whoever leaves before the answer has nothing to show for it, and yet used the upstream.
    if (this.#working && this.res.closed) this.#answered(0, NO_FIELDS)
    this.#verdict?.release()
    this.#beside?.then(verdict => verdict.release()).catch(() => {})
    if (!this.#working) return
    this.#working = false
    if (this.#tunnels) this.#finish()
    this.#end()
  }

  /** The head of the upstream's answer is there. */
  onAnswer(status: number, fields: Fields): void {
    if (status === 101) this.#verdict?.upgraded()
    this.#source = 'upstream'
    this.#answered(status, fields)
  }

  #answered(status: number, fields: AnswerFields): void {
    this.#verdict?.answered(status, fields)
    this.#beside?.then(verdict => verdict.answered(status, fields)).catch(() => {})
  }

  fail(code: ErrorCode): void {
    this.refuse({ code, requestId: this.facts.id })
  }

  refuse(rejection: Rejection): void {
    this.onUpstreamEnd()
    if (this.res.status !== 0 || this.res.closed) {
      this.res.cut()
      return
    }
    this.#source = 'gateway'
    const { answers, sendRejection } = this.#rooms
    sendRejection(this.req, this.res, refusal(rejection, this.#facts, answers, this.answerFields))
  }

  /** Ends a request that failed: with the catalogue's answer, or as an internal error that is logged. */
  abandon(error: unknown): void {
    const requestId = this.#facts?.id ?? randomUUID()
    if (error instanceof GatewayError) {
      this.refuse({ code: error.code, requestId, detail: error.message })
      return
    }
    if (!this.res.closed) this.#rooms.log.error({ err: error, id: requestId }, 'request failed')
    this.refuse({ code: 'internal', requestId })
  }

  #work(): void {
    this.#working = true
    this.#pending += 1
  }

  #end(): void {
    this.#pending -= 1
    if (this.#pending === 0) this.#rooms.ended()
  }

  /** Tells in the same turn where nothing is left to wait for: what a promise holds outlives a young collection. */
  #finish(): void {
    const verdict = this.#verdict
    const nothingToAwait = (this.judged ?? this.#beside ?? verdict?.settled) === undefined
    if (nothingToAwait) this.#tell(verdict)
    else this.#completeVerdict().then(complete => this.#tell(complete))
  }

  /** The verdict once every rule has spoken, those beside the request included. */
  async #completeVerdict(): Promise<Judgement | undefined> {
    await this.judged
    const beside = await this.#beside?.catch(() => undefined)
    const verdict = this.#verdict
    await Promise.all([verdict?.settled, beside?.settled])
    if (verdict === undefined || beside === undefined) return verdict
    const { allowed, outcomes, reportOnly } = verdict
    return { allowed, outcomes, reportOnly: reportOnly.concat(beside.reportOnly) }
  }

  #tell(verdict: Judgement | undefined): void {
    this.#rooms.finished({
      method: this.req.method,
      facts: this.#facts,
      project: this.#project,
      upstream: this.#upstream?.name ?? '',
      verdict: judgementWith(this.#ruling, verdict, { facts: this.#facts, project: this.#project }),
      revision: this.revision,
      status: this.#tunnels ? 101 : this.res.status,
      source: this.#source,
      startedAt: this.#startedAt,
      durationMs: performance.now() - this.#start,
      limiterUs: this.limiterUs,
    })
    this.#end()
  }
}
