/** The question form: what would happen to a request now, as `POST /explain` describes it. */
import type { ExplainedRule, Explanation } from '../explain/explanation.js'
import { send, sentence } from './api.js'
import { find, make, state } from './dom.js'
import { count, length } from './format.js'

export function startQuestions(): void {
  const form = find('question') as HTMLFormElement
  form.addEventListener('submit', async event => {
    event.preventDefault()
    const fields = new FormData(form)
    const text = (name: string) => String(fields.get(name) ?? '').trim()
    const optional = Object.fromEntries(
      ['project', 'host', 'ip', 'body'].flatMap(name => (text(name) === '' ? [] : [[name, text(name)]])),
    )
    const headers = text('headers').split('\n').flatMap(headerOf)
    const place = find('explained')
    try {
      const asked = {
        method: text('method').toUpperCase(),
        target: text('target'),
        ...optional,
        ...(headers.length > 0 && { headers }),
      }
      place.replaceChildren(...answerWords(await send<Explanation>('POST', '/explain', asked)))
    } catch (error) {
      place.replaceChildren(make('p', { class: 'fault' }, sentence(error)))
    }
  })
}

function headerOf(line: string): [string, string][] {
  if (line.trim() === '') return []
  const [name = '', ...value] = line.split(':')
  return [[name.trim(), value.join(':').trim()]]
}

function whyNone({ closed, quota_path }: Explanation['request']): string {
  if (closed) return ': the path is closed in gateway.yaml'
  return quota_path ? ": the gateway answers with the caller's own windows" : ''
}

function answerWords({
  request,
  project,
  upstream,
  access,
  rules,
  passed,
  answer,
}: Explanation): HTMLElement[] {
  const facts = [
    `${request.method} ${request.target} of client ${request.client}`,
    project === null
      ? 'no project'
      : `project ${project.id} (${project.plan}, ${project.environment}; found by ${project.by})`,
    upstream === null ? `no upstream${whyNone(request)}` : `upstream ${upstream}`,
    ...access.map(
      ({ entry, action, mode, src, why }) => `access entry ${entry}: ${action}, ${mode} (${why ?? src})`,
    ),
  ]
  return [
    verdict(answer),
    make('p', {}, `${facts.join('; ')}.`),
    ...(answer.detail === null ? [] : [make('p', {}, answer.detail)]),
    ...(rules.length === 0
      ? []
      : [make('h3', {}, 'Rules that match'), make('ul', {}, ...rules.map(ruleWords))]),
    ...(passed.length === 0
      ? []
      : [
          make('h3', {}, 'Rules that look at this path, but not at this request'),
          make('ul', {}, ...passed.map(({ rule, why }) => make('li', {}, `${rule}: ${PASSED[why] ?? why}`))),
        ]),
    make(
      'details',
      {},
      make('summary', {}, 'Fields the gateway adds'),
      make('pre', { tabindex: '0' }, answer.fields.map(([name, value]) => `${name}: ${value}`).join('\n')),
    ),
  ]
}

const PASSED: Readonly<Record<string, string>> = {
  method: 'its patterns name another method',
  read: 'GET, HEAD and OPTIONS are exempt without reads: true',
  when: 'its conditions leave this request out',
}

function verdict({
  status,
  code,
  refused_by,
  would_be_refused_by,
  wait,
}: Explanation['answer']): HTMLElement {
  const would =
    would_be_refused_by.length === 0
      ? ''
      : ` Report-only rules would refuse it: ${would_be_refused_by.join(', ')}.`
  if (code === null)
    return make(
      'p',
      { class: 'verdict' },
      state('good', status === null ? 'It passes' : `Answered ${status}`),
      would,
    )
  const by = refused_by.length === 0 ? '' : ` by ${refused_by.join(', ')}`
  const waits = wait === null ? '' : ` It waits up to ${length(wait.up_to_ms)} for room before.`
  return make('p', { class: 'verdict' }, state('bad', `Refused: ${status} ${code}`), `${by}.${waits}${would}`)
}

const SKIPPED: Readonly<Record<string, string>> = {
  unlimited: 'counts nothing',
  when: 'its conditions leave this request out',
  key: 'a part of its key is absent',
  messages: 'counts the messages of WebSockets',
}

function ruleWords({ rule, mode, src, skipped, result, counters }: ExplainedRule): HTMLElement {
  const kind = result === 'allowed' ? 'good' : result === null ? 'quiet' : mode === 'enforce' ? 'bad' : 'warn'
  const word = result ?? SKIPPED[skipped ?? ''] ?? 'not asked'
  const used = counters.map(({ policy, q, w_ms, lifetime, used, t_ms }) => {
    const whole = `${policy}: ${used === null ? 'not counted' : count(used)} of ${count(q)}`
    if (lifetime) return `${whole} in all`
    return w_ms === null || t_ms === null ? whole : `${whole} in ${length(w_ms)}, more in ${length(t_ms)}`
  })
  return make(
    'li',
    {},
    state(kind, word),
    ` ${rule} (${mode}, ${src})${used.length === 0 ? '' : ` – ${used.join('; ')}`}`,
  )
}
