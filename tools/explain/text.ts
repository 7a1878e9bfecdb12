/** Prints an explanation as text, in the order of the gateway's steps. */

import { listed } from '../../config/problem.js'
import { ownerOfTrial } from '../../config/words/share.js'
import type {
  ExplainedAccess,
  ExplainedCaller,
  ExplainedCounter,
  ExplainedProject,
  ExplainedRule,
  Explanation,
} from '../../gateway/explain/explanation.js'
import { perText, waitText } from '../../gateway/forward/units.js'
import { MESSAGES } from '../../gateway/policy/policy.js'
import type { Io } from '../io.js'
import { grouped, printable, wrap } from '../text.js'

export function writeExplanation(explanation: Explanation, io: Io): void {
  const lines = new Lines(io)
  const { request, caller, project, upstream, rules, answer, live } = explanation
  lines.heading(`${request.method} ${request.target}`)
  lines.field('path', pathText(explanation))
  const credential = request.credential === null ? '' : ` (${request.credential})`
  lines.field(
    'client',
    `${request.client}, ${request.authenticated ? 'with' : 'without'} credentials${credential}`,
  )
  if (caller?.requires) lines.field('requires', requiredText(caller.requires.scopes))
  if (project !== null) lines.field('project', projectText(project, request.host, caller))
  else if (caller !== null) lines.field('project', `nobody (${askedText(caller)})`)
  if (upstream !== null) lines.field('upstream', upstreamText(explanation, upstream))
  for (const entry of explanation.access) lines.field('access', accessText(entry))
  writeBucket('', explanation.bucket, explanation, lines)
  writeBucket('report-only ', explanation.report_only_bucket, explanation, lines)
  for (const rule of rules) writeRule(rule, lines, live)
  if (explanation.passed.length > 0) {
    lines.heading('Rules that look at this path, but not at this request')
    for (const one of explanation.passed) {
      lines.field(one.rule, `${whyPassed(one, explanation)} (${one.pattern})`)
    }
  }
  lines.heading('Answer')
  lines.text(verdictText(explanation))
  if (answer.would_be_refused_by.length > 0) {
    lines.text(
      `Report-only, so it passes all the same: ${listed(answer.would_be_refused_by, 'and')} would refuse it.`,
    )
  }
  for (const [name, value] of answer.fields) lines.field(name, value)
  const whose = live
    ? `From the running gateway, under ${explanation.revision}. Its counters were read, not charged; what is used includes this request if it is admitted.`
    : `From the files alone, ${explanation.revision}: this describes a first request. --live asks the running gateway.`
  lines.note(whose)
}

function pathText({ request: { path, target, closed, quota_path }, answer }: Explanation): string {
  if (path === null) {
    return answer.code === 'bad-target' ? 'none: the target has no normal form' : 'not looked at'
  }
  const asked = target.replace(/^https?:\/\/[^/?]*/i, '').split('?')[0]
  const form = path === asked ? 'already in normal form' : 'its normal form, which is matched and counted'
  const own = quota_path ? ', quotaPath in gateway.yaml' : ''
  return `${path} (${form})${closed ? ', under "closed" in gateway.yaml' : own}`
}

/** `app, as /internal/x`, if it gets another target than the client asked for. */
function upstreamText({ request: { target }, forwarded }: Explanation, upstream: string): string {
  const asked = target.replace(/^https?:\/\/[^/?]*/i, '')
  return forwarded === null || forwarded === asked ? upstream : `${upstream}, as ${forwarded}`
}

function requiredText(scopes: readonly string[]): string {
  const which = scopes.length === 0 ? '' : ` that allows ${listed(scopes, 'and')}`
  return `a credential that is checked${which}`
}

/** `jwt: expired, host: acme`. */
function askedText(caller: ExplainedCaller | null): string {
  const asked = caller?.asked ?? []
  return asked
    .map(({ identifier, found, fault }) => `${identifier}: ${found ?? fault ?? 'nobody'}`)
    .join(', ')
}

function projectText(
  { id, plan, environment, by }: ExplainedProject,
  host: string,
  caller: ExplainedCaller | null,
): string {
  const what = `${id}, ${plan} in ${environment}`
  const order = askedText(caller)
  if (by === 'given') return `${what}; as you say. Of the request itself the identifiers say ${order}`
  if (by === 'nobody')
    return `${what}; no identifier knows the request (${order}), so unknownProject counts it`
  const wrong = caller?.credential === 'invalid' ? `, after a wrong credential (${order})` : ''
  return `${what}; found by ${by}${by === 'host' ? ` ${host}` : ''}${wrong}`
}

/** `exempt from every limit by office, for network 198.51.100.0/24; written at policies/access.yaml:4`. */
function accessText(entry: ExplainedAccess): string {
  const { action, mode, src, why, set_by, until } = entry
  const what = action === 'deny' ? 'denied' : 'exempt from every limit'
  const said = mode === 'enforce' ? what : `would be ${what} (report-only)`
  const place = 'network' in entry ? `network ${entry.network}` : `project ${entry.project}`
  const where = why === null ? `written at ${src}` : `set by ${set_by} at the admin port (${src}): ${why}`
  return `${said} by ${entry.entry}, for ${place}${until === null ? '' : `, until ${until}`}; ${where}`
}

function writeBucket(
  which: '' | 'report-only ',
  bucket: Explanation['bucket'],
  { project }: Explanation,
  lines: Lines,
): void {
  if (bucket === null || project === null) return
  const { name, pattern, passed } = bucket
  const none = `none: no ${which}project limit counts this request`
  lines.field(`${which}bucket`, name === null ? none : `${name}, by ${pattern}`)
  const row = `${project.plan} in ${project.environment}`
  for (const one of passed) lines.item(`not ${one.bucket} (${one.pattern}): ${whyNot(one.why, row, pattern)}`)
}

function whyNot(why: 'method' | 'no-quota' | 'less-specific', row: string, chosen: string | null): string {
  if (why === 'method') return 'another method'
  if (why === 'no-quota') return `it has no quota for ${row}`
  return `less specific than ${chosen}`
}

function whyPassed({ why, unmet }: Explanation['passed'][number], { request, project }: Explanation): string {
  if (why === 'method') return 'another method'
  if (why === 'read') return 'GET, HEAD and OPTIONS are exempt without "reads: true"'
  const are = request.authenticated ? 'carries' : 'carries no'
  const facts = {
    authenticated: `the request ${are} credentials${project?.verified ? ', verified ones' : request.authenticated ? ', which nobody has verified' : ''}`,
    projects: `the project is ${project?.id}`,
    plans: `the plan is ${project?.plan}`,
    environments: `the environment is ${project?.environment}`,
    networks: `the client ${request.client} is in none of its networks`,
  }
  return `its "when" leaves this request out: ${unmet === null ? '' : facts[unmet]}`
}

function writeRule(rule: ExplainedRule, lines: Lines, live: boolean): void {
  lines.heading(`${rule.rule} (${rule.kind}, ${rule.mode})`)
  if (rule.mode_src !== undefined) lines.field('mode', forNowText(rule))
  const tried = ownerOfTrial(rule.rule)
  if (tried !== undefined) lines.field('trial', `of ${tried}: counts beside it, and only reports`)
  if (rule.share !== null) lines.field('share', shareText(rule.share))
  lines.field('matched by', `${rule.pattern}, written at ${rule.src}`)
  if (rule.negotiated !== undefined) lines.field('negotiated', negotiatedText(rule.negotiated))
  if (rule.methods !== null) lines.field(rule.methods === MESSAGES ? 'counts' : 'methods', rule.methods)
  lines.field('key', rule.key.map(({ part, value }) => `${part} ${value ?? 'absent'}`).join(', '))
  if (rule.skipped !== null) {
    lines.field('says', `nothing: ${SKIPPED[rule.skipped]}`)
    return
  }
  for (const counter of rule.counters) lines.field(counter.policy, counterText(counter, live))
  lines.field('says', resultText(rule))
}

/** `set by the admin API for now (/rules/scim/mode); its file says enforce`. */
function forNowText({ mode_src, declared_mode }: Pick<ExplainedRule, 'mode_src' | 'declared_mode'>): string {
  return `set by the admin API for now (${mode_src}); its file says ${declared_mode}`
}

/** `on the admin port by anna, until 2026-12-31: Contract of 1 May`. */
function negotiatedText({ set_by, why, until }: NonNullable<ExplainedRule['negotiated']>): string {
  return `on the admin port by ${set_by}${until === null ? '' : `, until ${until}`}: ${why}`
}

function shareText({ percent, of, inside }: NonNullable<ExplainedRule['share']>): string {
  const whose = of === 'projects' ? 'of projects' : 'of its keys'
  return `enforced for ${percent}% ${whose}${inside === null ? '' : `; this one is ${inside ? 'inside' : 'outside'}`}`
}

const SKIPPED: Record<NonNullable<ExplainedRule['skipped']>, string> = {
  unlimited: 'it is unlimited',
  when: 'its "when" leaves this request out',
  key: 'a part of its key is absent (missing: skip)',
  messages: 'it counts the messages of WebSockets, and this request opens none',
}

function counterText(counter: ExplainedCounter, live: boolean): string {
  const { q, w_ms, calendar, lifetime, credit, cost, reserved, used, attempted, left, t_ms, violated } =
    counter
  const admits = w_ms === null && !lifetime ? 'at a time' : perText(w_ms ?? 0, calendar, lifetime)
  const given = credit ? ` (${grouped(credit)} of it credit)` : ''
  const costs =
    cost === undefined ? '' : `, of which this request ${reserved ? 'reserves' : 'costs'} ${grouped(cost)}`
  const quota = `${grouped(q)} ${admits}${given}${costs}`
  if (!live) return quota
  if (used === null) return `${quota}; nobody counts now`
  const when = t_ms === null ? 'with new credit only' : `in ${waitText(Math.ceil(t_ms / 1000))}`
  const wait = violated ? `, may pass ${when}` : ''
  // Volumetric rules count what they refuse.
  const beyond = attempted !== null && attempted > used ? ` (${grouped(attempted)} attempted)` : ''
  return `${quota}; ${grouped(used)} used${beyond}, ${grouped(left ?? 0)} left${wait}`
}

function resultText(rule: ExplainedRule): string {
  return rule.methods === MESSAGES ? `to the next message ${wordOf(rule)}` : wordOf(rule)
}

function wordOf({ result, mode, store, counters }: ExplainedRule): string {
  if (result === 'unavailable') return 'no: it cannot be counted, and onStoreError is closed'
  if (result === 'allowed') return store === 'none' ? 'yes, uncounted' : 'yes'
  const reason = counters.length === 0 ? ', for what its key lacks (missing: deny)' : ''
  return mode === 'enforce' ? `no${reason}` : `it would say no${reason}`
}

function verdictText({ request, answer, upstream, project, live }: Explanation): string {
  if (answer.code === 'credential-unchecked' && !live) {
    return 'Not known: the files alone cannot check this credential, because only a running gateway reads the keys. --live asks one.'
  }
  if (answer.status === null) return `Let through to ${upstream}.`
  if (answer.code === null && (project === null || upstream !== null))
    return `${answer.status}, by the gateway itself: no rule is asked.`
  if (answer.code === null) {
    const what = request.quota_path ? "with the caller's own windows" : 'as the route says'
    return `${answer.status}, by the gateway itself, ${what}.`
  }
  const by = answer.refused_by.length === 0 ? '' : ` by ${listed(answer.refused_by, 'and')}`
  const waits = answer.wait === null ? '' : `${heldText(answer.wait)} `
  return `${waits}Refused${by}: ${answer.status} ${answer.code}. ${answer.detail ?? ''}`
}

/** What happens before a refusal. */
function heldText({ up_to_ms, room_in_ms }: NonNullable<Explanation['answer']['wait']>): string {
  const when =
    room_in_ms === null ? '' : `; there is some in ${msText(room_in_ms)}, unless others wait for it already`
  return `Would wait up to ${msText(up_to_ms)} for room${when}. If it waits in vain:`
}

/** `300 ms`, `10 s`. */
const msText = (ms: number) => (ms % 1000 === 0 ? `${ms / 1000} s` : `${ms} ms`)

/** Prints lines that fit the terminal, with control characters of the request removed. */
class Lines {
  readonly #io: Io
  #first = true

  constructor(io: Io) {
    this.#io = io
  }

  heading(text: string): void {
    this.#io.out(
      `${this.#first ? '' : '\n'}${this.#io.style('bold', wrap(printable(text), this.#io.columns))}\n`,
    )
    this.#first = false
  }

  field(name: string, value: string): void {
    this.#indented(`${name}: ${value}`, '  ', '    ')
  }

  item(text: string): void {
    this.#indented(text, '    ', '      ')
  }

  text(text: string): void {
    this.#indented(text, '  ', '  ')
  }

  note(text: string): void {
    this.#io.out(`\n${this.#io.style('dim', wrap(printable(text), this.#io.columns))}\n`)
  }

  #indented(text: string, first: string, rest: string): void {
    const lines = wrap(printable(text), this.#io.columns - rest.length).split('\n')
    this.#io.out(lines.map((line, i) => `${i === 0 ? first : rest}${line}\n`).join(''))
  }
}
