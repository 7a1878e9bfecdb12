/** The tables of projects, counters, slots and addresses. */
import type {
  LiveAddress,
  LiveClosest,
  LiveProject,
  LiveRule,
  LiveSlots,
  LiveUpstream,
} from '../admin/live-snapshot.js'
import { button, setText, state } from './dom.js'
import { count, length, moment, percent, rate } from './format.js'
import { openReset } from './override-forms.js'
import { LiveTable, links, numbers } from './table.js'

type Show = (subject: { readonly project: string } | { readonly rule: string }) => void

/** The busiest projects and the most refused. */
export function projectsTable(show: Show): LiveTable<LiveProject> {
  return new LiveTable({
    caption: 'The busiest and the most refused projects',
    id: idOf,
    empty: 'No project has sent a request in the last hour.',
    sortedBy: 'Refused/s',
    columns: [
      { ...links('Project', idOf, ({ id }) => show({ project: id })), value: idOf },
      { title: 'Plan', wide: true, value: columnOf, text: columnOf },
      numbers('Requests/s', ({ rates }) => rates.requests, rate),
      numbers('Refused/s', ({ rates }) => rates.refused, rate),
      numbers('Would/s', ({ rates }) => rates.would_refuse, rate),
      numbers('Requests, 1 h', ({ last_hour }) => last_hour.requests, count, true),
      numbers('Refused, 1 h', ({ last_hour }) => last_hour.refused),
    ],
  })
}

const idOf = ({ id }: LiveProject) => id
const columnOf = ({ plan, environment }: LiveProject) => `${plan}/${environment}`

/**
 * The counters that have used most of their quota. `ruleOf` returns the rule, whose key a reset needs; without a rule in
 * force there is nothing to reset.
 */
export function closestTable(
  show: Show,
  ruleOf: (id: string) => LiveRule | undefined,
): LiveTable<LiveClosest> {
  return new LiveTable({
    caption: 'Counters of the last minute that are closest to their limit',
    id: ({ rule, policy, key }) => `${rule} ${policy} ${key}`,
    empty: 'No counter was charged in the last minute.',
    columns: [
      {
        title: 'Used',
        text: ({ used, quota }) => percent(used / quota),
        paint: (cell, { used, quota, mode }) => {
          const kind = used >= quota && mode === 'enforce' ? 'bad' : used >= 0.8 * quota ? 'warn' : 'good'
          cell.replaceChildren(state(kind, percent(used / quota)))
        },
      },
      links(
        'Project',
        ({ project }) => project,
        ({ project }) => show({ project }),
      ),
      links(
        'Limit',
        ({ policy }) => policy,
        ({ rule }) => show({ rule }),
      ),
      {
        title: 'Of',
        text: ({ used, quota, window_ms }) =>
          `${count(used)}/${count(quota)} in ${window_ms === null ? 'all' : length(window_ms)}`,
      },
      {
        title: 'Free in',
        number: true,
        wide: true,
        text: ({ reset_ms }) => (reset_ms === null ? 'credit only' : length(reset_ms)),
      },
      {
        title: 'Key',
        wide: true,
        text: ({ key }) => key,
        paint: (cell, { key }) => setText(cell, key.slice(0, 12)),
      },
      {
        title: 'Reset',
        text: ({ rule }) => (ruleOf(rule) === undefined ? '' : 'Reset…'),
        paint(cell, { rule, project, policy }) {
          cell.replaceChildren()
          const known = ruleOf(rule)
          if (known === undefined) return
          const open = () => openReset(ruleOf(rule) ?? known, { project })
          cell.append(button('Reset…', open, { 'aria-label': `Reset ${policy} of ${project}…` }))
        },
      },
    ],
  })
}

export function slotsTable(): LiveTable<LiveSlots> {
  return new LiveTable({
    caption: 'In-flight slots that requests hold',
    id: ({ rule }) => rule,
    empty: 'No request holds a slot.',
    columns: [
      { title: 'Rule', text: ({ rule }) => rule },
      { title: 'Held', number: true, text: ({ held }) => count(held) },
      { title: 'Oldest', number: true, text: ({ oldest_ms }) => length(oldest_ms) },
    ],
  })
}

type Address = LiveAddress & { readonly upstream: string }

export function upstreamsTable(): LiveTable<Address> {
  return new LiveTable({
    caption: 'Upstreams and their addresses',
    id: ({ upstream, address }) => `${upstream} ${address}`,
    empty: 'No upstream is open.',
    columns: [
      { title: 'Upstream', text: ({ upstream }) => upstream },
      { title: 'Address', text: ({ address }) => address },
      {
        title: 'State',
        text: ({ state }) => state,
        paint: (cell, { state: word }) => cell.replaceChildren(state(KINDS[word] ?? 'bad', word)),
      },
      { title: 'Cause', text: causeText },
      { title: 'In flight', number: true, text: ({ in_flight }) => count(in_flight) },
      { title: 'WebSockets', number: true, wide: true, text: ({ web_sockets }) => count(web_sockets) },
    ],
  })
}

/** How the states of addresses look that are no fault. */
const KINDS: Partial<Record<LiveAddress['state'], 'good' | 'warn'>> = { ok: 'good', draining: 'warn' }

/** Why an address is not ok, and since when. */
function causeText({ cause, since }: Address): string {
  return cause === undefined || since === undefined ? '' : `${cause}, since ${moment(since)}`
}

/** The rows of `upstreamsTable`. */
export function addressesOf(upstreams: readonly LiveUpstream[]): Address[] {
  return upstreams.flatMap(({ name, addresses }) => addresses.map(one => ({ ...one, upstream: name })))
}
