/** The chart of the last hour for all requests, a rule or a project, with the overrides available for it. */
import type { LiveHistory, LiveRule, LiveSnapshot } from '../admin/live-snapshot.js'
import { askJson, query, sentence } from './api.js'
import { chartOf } from './chart.js'
import { button, find, make, setText } from './dom.js'
import { bucketsIn, isNegotiable, limitsOf, openNegotiation } from './negotiate.js'
import { openAccess, openMode, openReset, openUndo } from './override-forms.js'

/** The rule or project that is shown; all requests if neither is set. */
export interface HistorySubject {
  readonly rule?: string
  readonly project?: string
}

const FRESH_MS = 10_000
/** The source of all entries set on the admin port, which are one rule here; each is undone by itself. */
const RUNTIME_SRC = '/access'

export class HistoryPanel {
  #subject: HistorySubject = {}
  #askedAt = 0
  #facts = ''

  /** Shows the last hour of a rule or a project; of all requests when it is `{}`. */
  readonly show = (subject: HistorySubject): void => {
    this.#subject = subject
    this.#askedAt = 0
    this.#facts = ''
    const heading = find('history-title')
    const { rule, project } = subject
    const title =
      rule !== undefined ? `Rule ${rule}` : project !== undefined ? `Project ${project}` : undefined
    setText(heading, title ?? 'All requests')
    find('history-facts').replaceChildren()
    find('history-chart').replaceChildren()
    if (title !== undefined) {
      heading.scrollIntoView({ block: 'nearest' })
      heading.focus()
    }
  }

  update(snapshot: LiveSnapshot): void {
    this.#showFacts(snapshot)
    if (Date.now() - this.#askedAt >= FRESH_MS) void this.#ask()
  }

  async #ask(): Promise<void> {
    const subject = this.#subject
    this.#askedAt = Date.now()
    const place = find('history-chart')
    const drawn = await askJson<LiveHistory>(`/live/history${query({ ...subject })}`).then(
      history => chartOf(history, place.clientWidth),
      error => make('p', { class: 'empty' }, `The last hour cannot be shown. ${sentence(error)}`),
    )
    if (subject === this.#subject) place.replaceChildren(drawn)
  }

  /** Redrawn only when they have changed, so that a focused button keeps the focus. */
  #showFacts({ rules, projects, overrides }: LiveSnapshot): void {
    const subject = this.#subject
    const rule = rules.find(({ id }) => id === subject.rule)
    const project = projects.find(({ id }) => id === subject.project)
    const call = `DELETE /rules/${rule?.id}/mode`
    const override = overrides.find(({ undo_call }) => undo_call === call)
    const said = rule ? ruleFacts(rule) : project ? `${project.plan}, ${project.environment}` : ''
    const buckets = bucketsIn(rules)
    const limits = limitsOf(subject.project ?? '', overrides)
    const facts = JSON.stringify([subject, said, override?.id, limits.map(({ id }) => id), buckets])
    if (facts === this.#facts) return
    this.#facts = facts
    const buttons: HTMLElement[] = []
    if (rule !== undefined) {
      if (override !== undefined) {
        buttons.push(button(`Undo ${rule.mode}…`, () => openUndo(override)))
      } else if (!rule.trial && rule.src !== RUNTIME_SRC) {
        const label = rule.mode === 'enforce' ? 'Report-only now…' : 'Enforce now…'
        buttons.push(button(label, () => openMode(rule)))
      }
      if (buckets.includes(rule.id))
        buttons.push(button('Negotiate a limit…', () => openNegotiation(buckets, { bucket: rule.id })))
      if (rule.kind !== 'access') buttons.push(button('Reset a counter…', () => openReset(rule)))
    }
    if (subject.project !== undefined) {
      const { project } = subject
      buttons.push(
        button('Deny…', () => openAccess('deny', project)),
        button('Exempt…', () => openAccess('exempt', project)),
      )
      if (isNegotiable(project))
        buttons.push(button('Negotiate a limit…', () => openNegotiation(buckets, { project })))
      for (const limit of limits) {
        const bucket = limit.undo_call?.split('/').at(-1)
        buttons.push(button(`Undo the limit for ${bucket}…`, () => openUndo(limit)))
      }
    }
    if (Object.keys(subject).length > 0) buttons.push(button('Back to all requests', () => this.show({})))
    find('history-facts').replaceChildren(
      ...(said === '' ? [] : [make('p', {}, said)]),
      ...(buttons.length === 0 ? [] : [make('div', { class: 'buttons' }, ...buttons)]),
    )
  }
}

function ruleFacts({ kind, src, key, methods, mode, declared_mode, share, trial }: LiveRule): string {
  return [
    `${trial ? 'Trial of a' : 'A'} ${kind} rule, ${modeWords({ mode, share })}`,
    ...(mode === declared_mode ? [] : [`the files say ${declared_mode}`]),
    ...(methods === undefined ? [] : [`counts ${methods}`]),
    ...(key.length === 0 ? [] : [`counts by ${key.join(' and ')}`]),
    `written in ${src}`,
  ].join('; ')
}

/** `enforce`, or `enforce for 20 % of keys`. */
export function modeWords({ mode, share }: Pick<LiveRule, 'mode' | 'share'>): string {
  return share === undefined ? mode : `${mode} for ${share.percent} % of ${share.of}`
}
