/** What the gateway would do with a request, step by step, by the code that would do it (`sluice explain`). */
import type { Gateway } from '../../config/schema/gateway.js'
import { ownerOfTrial } from '../../config/words/share.js'
import type { Asked } from '../admin/explain.js'
import type { Configuration } from '../configured/load.js'
import { PEEK_BYTES } from '../decide/body-kind.js'
import { answersCalls, countsCalls, needsBody } from '../decide/body-parts.js'
import type { Counters } from '../decide/dry-run.js'
import { callsIn } from '../decide/json-rpc.js'
import type { DecideRequest } from '../decide/question.js'
import { GatewayError, UnknownQuestion } from '../errors.js'
import { forwardedTarget } from '../forward/headers.js'
import { type Caller, identifyBy, type Said } from '../identify/identify.js'
import { Unchecked } from '../identify/unchecked.js'
import type { UnknownHosts } from '../identify/unknown.js'
import { readWritten } from '../listen/written.js'
import type { Runtime } from '../overrides/runtime.js'
import { isExempt } from '../pipeline/access.js'
import { refusal } from '../pipeline/answer.js'
import { type Entered, enter, isRouted } from '../pipeline/enter.js'
import { routeFieldsOf } from '../pipeline/route-fields.js'
import { Access, type Ruling } from '../policy/access.js'
import type { Facts, Matched, Mode, Project, Rule } from '../types.js'
import {
  explainedAccess,
  explainedAnswer,
  explainedRefusal,
  unaskedAnswer,
  verdictOn,
  withAccess,
} from './explained.js'
import type {
  AskedIdentifierResult,
  ExplainedAnswer,
  ExplainedBucket,
  ExplainedCaller,
  ExplainedProject,
  ExplainedRule,
  Explanation,
  PassedRule,
} from './explanation.js'
import { passedBuckets, passedRules } from './why-not.js'

export interface ExplainOptions {
  readonly loaded: Configuration
  readonly counters: Counters
  readonly unknownHosts: UnknownHosts
  /** The entries, modes and limits set on the admin port of a running gateway. */
  readonly runtime?: Pick<Runtime, 'table' | 'contents'>
  /** Whether the counters are a running gateway's. */
  readonly live: boolean
}

/** Defaults for what a question leaves out. */
const USUAL_HOST = 'localhost'
const USUAL_PEER = '127.0.0.1'

/** Changes no counter. @throws {UnknownQuestion} when the question names a project that is not configured */
export async function explain(asked: Asked, options: ExplainOptions): Promise<Explanation> {
  const explainer = new Explainer(asked, options)
  return explainer.explain()
}

class Explainer {
  readonly #asked: Asked
  readonly #options: ExplainOptions
  readonly #settings: Gateway
  readonly #given: Project | undefined
  readonly #host: string
  #credential: string | undefined
  #requires: ExplainedCaller['requires'] = null
  #caller: ExplainedCaller | undefined
  #facts: Facts | undefined
  #project: Project | undefined
  #explainedProject: ExplainedProject | undefined
  #upstream: string | undefined
  /** A route leads somewhere, so the policy's rules are asked. */
  #isAsked = false
  #entered: Entered | undefined
  #matched: readonly Matched[] = []
  #ruling: Ruling | undefined

  constructor(asked: Asked, options: ExplainOptions) {
    const { projects, gateway } = options.loaded.config
    const known = projects.find(({ id }) => id === asked.project)
    if (asked.project !== undefined && known === undefined) {
      throw new UnknownQuestion(`There is no project "${asked.project}" in this configuration.`)
    }
    this.#asked = asked
    this.#options = options
    this.#settings = gateway
    this.#given = known && { id: known.id, plan: known.plan, environment: known.environment }
    this.#host = asked.host ?? known?.hosts[0] ?? USUAL_HOST
  }

  async explain(): Promise<Explanation> {
    try {
      const request = await this.#enter()
      if (request === undefined) return this.#result([], unaskedAnswer(this.#entered))
      const { loaded, counters, runtime } = this.#options
      const { policy } = loaded.compiled
      const { verdict, rules } = await verdictOn(request, policy, counters, runtime?.contents.quotas)
      const calls = answersCalls(request.matched) ? request.calls : undefined
      const answered = { ...this.#entered, calls }
      return this.#result(rules, explainedAnswer(verdict, request.facts, this.#settings, answered))
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      const { code, message: detail, fields } = error
      const rejection = { code, detail, fields, requestId: this.#facts?.id ?? '' }
      const routeFields = this.#entered && routeFieldsOf(this.#entered)
      const answer = explainedRefusal(refusal(rejection, this.#facts, this.#settings, undefined, routeFields))
      return this.#result([], answer)
    }
  }

  /** The steps before `decide`, in the order of the pipeline; undefined if the gateway itself answers. */
  async #enter(): Promise<DecideRequest | undefined> {
    const { loaded, runtime } = this.#options
    const { method, target, ip = USUAL_PEER, body } = this.#asked
    const written = { method, target, fields: this.#fields(), peer: ip }
    const { facts, credential } = readWritten(written, this.#settings)
    this.#credential = credential
    this.#facts = facts
    const { policy } = loaded.compiled
    const access = new Access(loaded.compiled.access, runtime)
    const { challenges } = loaded.compiled.walk()
    const identify = (_: Facts, required: boolean) => this.#identify(facts, required)
    const route = policy.routes.routeFor(facts)
    if (route?.auth === 'required') this.#requires = { scopes: route.scopes }
    const entered = await enter(facts, { policy, access, identify, challenges })
    const { facts: read, project, upstream, matched, ruling, refused, asksGateway } = entered
    this.#entered = entered
    this.#facts = read
    this.#upstream = upstream
    // No rule is asked about a request that is refused before, or has none.
    const isAnswered = entered.route?.answer !== undefined && isRouted(entered)
    const leadsOn = refused === undefined && (upstream !== undefined || isAnswered)
    this.#isAsked = leadsOn && entered.route?.ownRules === undefined
    this.#matched = matched
    this.#ruling = ruling
    if (refused !== undefined) throw refused
    if (project === undefined || asksGateway) return undefined
    const looks = body !== undefined && this.#matched.some(one => needsBody(one, read))
    const bodyPrefix = looks ? Buffer.from(body).subarray(0, PEEK_BYTES) : undefined
    const counted = bodyPrefix && this.#matched.some(countsCalls)
    const calls = counted ? callsIn(read, bodyPrefix, false) : undefined
    return { facts: read, project, matched: this.#matched, bodyPrefix, calls }
  }

  #fields(): string[] {
    const { headers = [], body } = this.#asked
    const fields = ['Host', this.#host, ...headers.flat()]
    const isTyped = headers.some(([name]) => name.toLowerCase() === 'content-type')
    if (body === undefined || isTyped) return fields
    const type = body.trimStart().startsWith('{') ? 'application/json' : 'application/x-www-form-urlencoded'
    return [...fields, 'Content-Type', type]
  }

  async #identify(facts: Facts, required: boolean): Promise<Caller> {
    const { loaded, unknownHosts } = this.#options
    const { config, compiled } = loaded
    const asked: AskedIdentifierResult[] = []
    const identifiers = compiled.identifiers.map(one => ({
      ...one,
      async identify(facts: Facts) {
        const said = await one.identify(facts, true)
        asked.push({ identifier: one.name, ...resultOf(said) })
        return said
      },
    }))
    const countApart = (host: string) => unknownHosts.hasRoomFor(host)
    const caller = await identifyBy(identifiers, config.gateway.unknownProject, { countApart })(
      facts,
      required,
    )
    const given = this.#given
    const found = asked.at(-1)?.found ?? null
    const isFound = found !== null && (given === undefined || given.id === found)
    // Who names a project asks about a request of that project, with all its credential could allow.
    const supposed = given && {
      ...given,
      verified: required,
      scopes: config.gateway.routes.flatMap(({ scopes }) => scopes),
    }
    const project = isFound ? caller.project : (supposed ?? caller.project)
    const credential = supposed && !isFound && required ? 'verified' : caller.credential
    this.#project = project
    if (project !== undefined) {
      const finder = isFound ? caller.identifier : undefined
      const by = finder ?? (given === undefined ? 'nobody' : 'given')
      const { id, plan, environment, verified = false } = project
      this.#explainedProject = { id, plan, environment, verified, by }
    }
    this.#caller = { requires: this.#requires, credential, asked }
    return { ...caller, project, credential }
  }

  #result(rules: readonly ExplainedRule[], answer: ExplainedAnswer): Explanation {
    const { loaded, live } = this.#options
    const facts = this.#facts
    const { method, target, ip = USUAL_PEER } = this.#asked
    return {
      revision: loaded.compiled.policy.revision,
      live,
      request: {
        method,
        target,
        path: facts?.path ?? null,
        closed: facts !== undefined && loaded.compiled.policy.routes.isClosed(facts),
        quota_path: this.#entered?.route?.ownRules !== undefined,
        host: facts?.host ?? this.#host,
        client: facts?.client ?? ip,
        authenticated: facts?.authenticated ?? false,
        credential: this.#credential ?? null,
      },
      caller: this.#caller ?? null,
      project: this.#explainedProject ?? null,
      upstream: this.#upstream ?? null,
      forwarded: this.#upstream && facts ? forwardedTarget(facts, this.#entered?.route?.changes) : null,
      access: explainedAccess(this.#ruling, this.#options.runtime?.contents.access),
      bucket: this.#bucket('enforce'),
      report_only_bucket: this.#bucket('report-only'),
      rules,
      passed: this.#passed(),
      answer: withAccess(answer, this.#ruling),
    }
  }

  #passed(): PassedRule[] {
    if (this.#facts === undefined || this.#project === undefined || !this.#isAsked) return []
    if (isExempt(this.#ruling)) return []
    const others = this.#options.loaded.compiled.policy.rules.filter(
      ({ rule }) => ownerOfTrial(rule.id) === undefined && !this.#matched.some(one => one.rule === rule),
    )
    return passedRules(others, this.#facts, this.#project)
  }

  #bucket(mode: Mode): ExplainedBucket | null {
    const { policy } = this.#options.loaded.compiled
    if (this.#facts === undefined || this.#project === undefined || !this.#isAsked) return null
    if (isExempt(this.#ruling)) return null
    const table = policy.tableOf(this.#project)
    const buckets = policy.buckets.filter(
      ({ name, mode: written }) => declaredMode(table?.rules.get(name), written) === mode,
    )
    if (mode === 'report-only' && buckets.length === 0) return null
    const chosen = this.#matched.find(
      ({ rule }) => declaredMode(rule) === mode && table?.rules.get(rule.id) === rule,
    )
    const named = buckets.map(({ name, patterns }) => [name, patterns] as const)
    const passed = passedBuckets(named, table, this.#facts, chosen?.route)
    return { name: chosen?.rule.id ?? null, pattern: chosen?.route ?? null, passed }
  }
}

function resultOf(said: Said): Pick<AskedIdentifierResult, 'found' | 'fault'> {
  if (said === undefined) return { found: null, fault: null }
  if (said instanceof Unchecked) return { found: null, fault: 'could not be checked' }
  if ('wrongCredential' in said) return { found: null, fault: said.reason ?? 'wrong' }
  return { found: said.id, fault: null }
}

/** A bucket stays among those of the mode in its file, whatever mode is set for now. */
function declaredMode(rule: Rule | undefined, written?: Mode): Mode | undefined {
  return rule?.forNow?.declared ?? rule?.mode ?? written
}
