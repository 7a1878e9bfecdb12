/** What an operator who was paged should know first: one sentence for each problem. */
import type { LiveSnapshot } from '../admin/live-snapshot.js'
import { button, find, make, setText, state } from './dom.js'
import { length, moment, rate, several, shortRevision } from './format.js'

export interface Notice {
  /** Identifies the problem: stays the same while its numbers change. */
  readonly about: string
  readonly kind: 'bad' | 'warn'
  readonly word: string
  readonly sentence: string
  /** Section with more details. */
  readonly section: `#${string}`
  /** Rule whose last hour shows more. */
  readonly rule?: string
}

/** Refusing rules that are listed one by one. */
const MOST_RULES = 5
/** The event loop of a healthy gateway is seldom delayed this long. */
const LATE_MS = 100

/** The notices, the worst first. */
function noticesOf(snapshot: LiveSnapshot): Notice[] {
  return [
    ...faults(snapshot),
    ...certificateFaults(snapshot),
    ...reloadFaults(snapshot),
    ...untrusted(snapshot),
    ...refusals(snapshot),
    ...unenforced(snapshot),
  ]
}

function* faults({
  store,
  rates,
  upstreams,
  missing,
  workers,
  process,
  at,
}: LiveSnapshot): Generator<Notice> {
  const now = Date.parse(at)
  if (store.state === 'away') {
    const sentence = `${store.address ?? 'Redis'} has been away since ${moment(store.since, now)}. Each rule follows its onStoreError.`
    yield { about: 'store', kind: 'bad', word: 'Redis away', sentence, section: '#standing' }
  }
  for (const { name, state, cause, since, addresses } of upstreams) {
    const old = addresses.find(({ name_fault }) => name_fault !== undefined)?.name_fault
    if (old !== undefined) {
      const sentence = `A name of ${name} has not been resolved since ${moment(old.since, now)}: ${old.cause}. Its last addresses stay in use.`
      yield { about: `name ${name}`, kind: 'warn', word: 'Name', sentence, section: '#upstreams' }
    }
    if (state !== 'ok') {
      const sentence = `${name} has been ${state} since ${moment(since ?? at, now)}: ${cause}.`
      yield { about: `upstream ${name}`, kind: 'bad', word: 'Upstream', sentence, section: '#upstreams' }
      continue
    }
    const silent = addresses.filter(one => one.state !== 'ok' && one.state !== 'draining')
    if (silent.length === 0) continue
    const named = silent.map(({ address, cause }) => `${address} (${cause})`).join(', ')
    const sentence = `${silent.length} of ${several(addresses.length, 'address', 'addresses')} of ${name} ${silent.length === 1 ? 'does' : 'do'} not answer, or not well: ${named}.`
    yield { about: `upstream ${name}`, kind: 'bad', word: 'Upstream', sentence, section: '#upstreams' }
  }
  if (rates.errors_of_upstreams > 0) {
    const sentence = `Upstreams fail ${rate(rates.errors_of_upstreams)} requests a second: they answer 5xx, or not at all (502, 504).`
    yield { about: 'upstream errors', kind: 'bad', word: 'Errors', sentence, section: '#upstreams' }
  }
  if (rates.errors_of_ours > 0) {
    const sentence = `The gateway answers ${rate(rates.errors_of_ours)} errors a second itself (5xx); the log names upstream and cause.`
    yield { about: 'own errors', kind: 'bad', word: 'Errors', sentence, section: '#upstreams' }
  }
  if (missing.length > 0) {
    const sentence = `${several(missing.length, 'worker does', 'workers do')} not answer (pid ${missing.join(', ')}): their numbers are missing here.`
    yield { about: 'workers', kind: 'bad', word: 'Workers', sentence, section: '#standing' }
  }
  const latest = Math.max(
    0,
    ...[...workers, ...(process ? [process] : [])].map(({ loop_delay_ms }) => loop_delay_ms ?? 0),
  )
  if (latest >= LATE_MS) {
    const sentence = `The event loop is ${length(latest)} late: the gateway is overloaded.`
    yield { about: 'loop', kind: 'warn', word: 'Overload', sentence, section: '#standing' }
  }
}

function* untrusted({ untrusted_forwarding: seen }: LiveSnapshot): Generator<Notice> {
  if (seen === null) return
  const sentence = `Requests from ${seen.from} name their clients in ${seen.field}, which is not believed. If that is your proxy, list its address in trustedProxies: until then all clients behind it count as one.`
  yield { about: 'untrusted forwarding', kind: 'warn', word: 'Proxy', sentence, section: '#standing' }
}

function* reloadFaults({ reload, revision, at }: LiveSnapshot): Generator<Notice> {
  if (reload?.result !== 'refused') return
  const sentence = `The reload at ${moment(reload.at, Date.parse(at))} was refused, ${several(reload.problems.length, 'problem')}: revision ${shortRevision(revision)} stays in force.`
  yield { about: 'reload', kind: 'bad', word: 'Reload', sentence, section: '#standing' }
}

function* certificateFaults({ certificate, at }: LiveSnapshot): Generator<Notice> {
  if (certificate === undefined) return
  const { domains, expires, failure } = certificate
  const ended = expires === null || Date.parse(expires) <= Date.parse(at)
  if (!ended && failure === null) return
  const consequence =
    expires === null
      ? 'TLS connections are refused, because there is no certificate yet.'
      : ended
        ? `The certificate for ${domains[0]} ended ${moment(expires, Date.parse(at))}.`
        : `The certificate for ${domains[0]} serves on until ${moment(expires, Date.parse(at))}, but was not renewed.`
  const sentence = `${consequence} ${failure ?? 'It is being ordered.'}`
  yield {
    about: 'certificate',
    kind: ended ? 'bad' : 'warn',
    word: 'Certificate',
    sentence,
    section: '#standing',
  }
}

function* refusals({ rules, closest }: LiveSnapshot): Generator<Notice> {
  const refusing = rules
    .filter(({ rates }) => rates.limited > 0)
    .toSorted((a, b) => b.rates.limited - a.rates.limited)
  for (const rule of refusing.slice(0, MOST_RULES)) {
    const full = closest.filter(one => one.rule === rule.id && one.used >= one.quota)
    const projects = [...new Set(full.map(({ project }) => project))]
    const who =
      projects.length === 0
        ? ''
        : ` At its limit now: ${projects.slice(0, 3).join(', ')}${projects.length > 3 ? ` and ${projects.length - 3} more` : ''}.`
    const sentence = `${rule.id} refuses ${rate(rule.rates.limited)} requests a second.${who}`
    yield {
      about: `rule ${rule.id}`,
      kind: 'bad',
      word: 'Refusing',
      sentence,
      section: '#rules',
      rule: rule.id,
    }
  }
  if (refusing.length > MOST_RULES) {
    const sentence = `${several(refusing.length - MOST_RULES, 'more rule refuses', 'more rules refuse')} requests.`
    yield { about: 'more rules', kind: 'bad', word: 'Refusing', sentence, section: '#rules' }
  }
}

function* unenforced({ rules }: LiveSnapshot): Generator<Notice> {
  const kinds = [
    { outcome: 'error', word: 'Uncounted', saying: 'Not counted, so not limited' },
    { outcome: 'would_limit', word: 'Report-only', saying: 'Report-only would refuse' },
  ] as const
  for (const { outcome, word, saying } of kinds) {
    const some = rules.filter(({ rates }) => rates[outcome] > 0)
    if (some.length === 0) continue
    const named = some.slice(0, 3).map(({ id, rates }) => `${id} (${rate(rates[outcome])} a second)`)
    const sentence = `${saying}: ${named.join(', ')}${some.length > 3 ? ` and ${some.length - 3} more` : ''}.`
    yield { about: outcome, kind: 'warn', word, sentence, section: '#rules' }
  }
}

export class Attention {
  readonly #drawn = new Map<string, { element: HTMLElement; text: HTMLElement }>()
  readonly #show: (subject: { rule: string }) => void
  #isFirst = true

  /** @param show shows the last hour of a rule */
  constructor(show: (subject: { rule: string }) => void) {
    this.#show = show
  }

  update(snapshot: LiveSnapshot): void {
    const notices = noticesOf(snapshot)
    const list = find('notices')
    for (const [about, { element }] of this.#drawn) {
      if (notices.some(notice => notice.about === about)) continue
      element.remove()
      this.#drawn.delete(about)
    }
    const fresh = notices.filter(({ about }) => !this.#drawn.has(about))
    for (const [place, notice] of notices.entries()) {
      const { element, text } = this.#drawn.get(notice.about) ?? this.#made(notice)
      setText(text, notice.sentence)
      if (list.children[place] !== element) list.insertBefore(element, list.children[place] ?? null)
    }
    find('all-well').hidden = notices.length > 0
    // Screen readers announce only new notices, not numbers that change every second.
    if (fresh.length > 0 && !this.#isFirst)
      setText(find('announced'), fresh.map(({ sentence }) => sentence).join(' '))
    this.#isFirst = false
  }

  #made({ about, kind, word, section, rule }: Notice) {
    const text = make('span')
    const more =
      rule === undefined
        ? make('a', { href: section }, 'Look')
        : button('Look', () => this.#show({ rule }), { class: 'link', 'aria-label': `Look at ${rule}` })
    const element = make('li', {}, state(kind, word), text, more)
    const made = { element, text }
    this.#drawn.set(about, made)
    return made
  }
}
