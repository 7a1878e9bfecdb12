/** The overrides that this page can perform, each by a route of the admin port. */
import type { LiveOverride, LiveRule } from '../admin/live-snapshot.js'
import { ask, query, send } from './api.js'
import { confirmAction, type Field, given, type Values } from './dialog.js'
import { entryName } from './entry-name.js'
import { length, time } from './format.js'

const MINUTE_MS = 60_000
export const LENGTH: Field = {
  name: 'length',
  label: 'For how long',
  value: String(60 * MINUTE_MS),
  choices: [
    ...[15, 60, 240, 1440].map(minutes => {
      const ms = minutes * MINUTE_MS
      return [String(ms), length(ms)] as const
    }),
    ['', 'until it is undone'],
  ],
}

/** The end of an override that begins now, if it has one. */
export function end({ length: ms = '' }: Values): { until?: string } {
  return ms === '' ? {} : { until: new Date(Date.now() + Number(ms)).toISOString() }
}

/** Only to the minute, since the time starts when the button is pressed. */
export function endWords(values: Values): string {
  const { until } = end(values)
  if (until === undefined) return 'until it is undone'
  return `for ${length(Number(values.length))}, until about ${time(until).slice(0, -3)} UTC`
}

/** Opens the dialog to make a rule report-only, or to enforce it. */
export function openMode({ id, mode, kind }: LiveRule): void {
  const wanted = mode === 'enforce' ? 'report-only' : 'enforce'
  const effect =
    wanted === 'enforce'
      ? 'What is over its limit is refused'
      : 'It no longer refuses anything, and only reports what it would have refused'
  confirmAction({
    title: wanted === 'enforce' ? `Enforce ${id}` : `Set ${id} to report-only`,
    verb: wanted === 'enforce' ? 'Enforce it now' : 'Report-only now',
    fields: [LENGTH],
    foretell: values =>
      `The ${kind} rule ${id} is ${wanted} from now on, ${endWords(values)}. ${effect}. The files stay as they are.`,
    async run(values) {
      const body = { mode: wanted, ...end(values), ...given(values, 'why', 'by') }
      await send('PUT', `/rules/${encodeURIComponent(id)}/mode`, body)
      return `${id} is ${wanted} now.`
    },
  })
}

/** The network in the name of an unknown caller, such as `client:203.0.113.0/24~HASH`; undefined for other projects. */
function networkOfCaller(project: string): string | undefined {
  return /^client:([^~]+)~/.exec(project)?.[1]
}

/** Opens the dialog to deny or exempt networks, or a project: for an unknown caller, its network. */
export function openAccess(action: 'deny' | 'exempt', shown?: string): void {
  const effect = action === 'deny' ? 'refused' : 'counted by no rule and never limited'
  const network = shown === undefined ? '' : networkOfCaller(shown)
  const project = network === undefined ? shown : undefined
  const who = project === undefined ? 'networks' : 'projects'
  const places = (values: Values) => (values.who ?? '').split(/[\s,]+/).filter(place => place !== '')
  confirmAction({
    title: `${action === 'deny' ? 'Deny' : 'Exempt'} a ${project === undefined ? 'network' : 'project'}`,
    verb: action === 'deny' ? 'Deny it now' : 'Exempt it now',
    fields: [
      {
        name: 'who',
        label: project === undefined ? 'Addresses or networks' : 'Project',
        hint:
          project === undefined ? 'Such as 203.0.113.7 or 2001:db8::/48; several with spaces between.' : '',
        value: project ?? network ?? '',
      },
      LENGTH,
    ],
    foretell(values) {
      const named = places(values).join(', ') || '…'
      const name = entryName(action, who, places(values))
      return `Every request of ${named} is ${effect}, from now on, ${endWords(values)}. The entry is called ${name}; it replaces one of that name.`
    },
    async run(values) {
      const named = places(values)
      const body = { action, [who]: named, ...end(values), ...given(values, 'why', 'by') }
      await send('PUT', `/access/${encodeURIComponent(entryName(action, who, named))}`, body)
      return `Requests of ${named.join(', ')} are ${effect} now.`
    },
  })
}

/** The fields that the form has for each part of a rule's key. */
const PATH: Field = { name: 'path', label: 'Path', hint: 'As a request has it: /users/42.' }
const METHOD: Field = { name: 'method', label: 'Method', value: 'GET' }
const PARTS: Readonly<Record<string, readonly Field[]>> = {
  project: [
    { name: 'project', label: 'Project', hint: 'client:203.0.113.7 for a caller without a project.' },
  ],
  'client-ip': [{ name: 'ip', label: 'Client address' }],
  method: [METHOD],
  path: [METHOD, PATH],
  'full-path': [PATH],
  ja3: [{ name: 'ja3', label: 'JA3 fingerprint' }],
  ja4: [{ name: 'ja4', label: 'JA4 fingerprint' }],
  'email-or-flow': [
    { name: 'email', label: 'E-mail address', optional: true },
    { name: 'flow', label: 'Flow id', optional: true },
  ],
  'json-rpc': [
    { name: 'call', label: 'JSON-RPC method', hint: 'With the tool of tools/call: tools/call:search.' },
  ],
  auth: [
    {
      name: 'auth',
      label: 'Credentials',
      choices: [
        ['authenticated', 'authenticated'],
        ['anonymous', 'anonymous'],
      ],
    },
  ],
}

/** Opens the dialog to reset one counter of a rule. A bucket belongs to the plan of a project, whatever it counts by. */
export function openReset(rule: LiveRule, shown: Values = {}): void {
  // A list shows only the network of an unknown caller: the rest of its address is for the operator to give.
  const isCaller = networkOfCaller(shown.project ?? '') !== undefined
  const known = isCaller ? { ...shown, project: 'client:' } : shown
  const parts = rule.kind === 'project-limits' ? ['project', ...rule.key] : rule.key
  const fields = [...new Map(parts.flatMap(partFields).map(field => [field.name, field])).values()].map(
    field => ({ ...field, value: known[field.name] ?? field.value ?? '' }),
  )
  confirmAction({
    title: `Reset a counter of ${rule.id}`,
    verb: 'Reset it now',
    fields,
    foretell(values) {
      const named = fields
        .filter(({ name }) => name !== 'project' || rule.key.includes(name))
        .map(({ name, label }) => `${label.toLowerCase()} ${values[name] || '…'}`)
      const whose = named.length === 0 ? '' : ` for ${named.join(', ')}`
      return `What ${rule.id} has counted${whose} is forgotten, and its whole quota is free again. This cannot be undone.`
    },
    async run(values) {
      const names = fields.map(({ name }) => name)
      const header = rule.key.flatMap(part => headerOf(part, values))
      const reason = {
        ...given(values, ...names.filter(name => !name.startsWith('header:')), 'why', 'by'),
        header,
      }
      await ask(`/counters/${encodeURIComponent(rule.id)}${query(reason)}`, { method: 'DELETE' })
      return `The counter of ${rule.id} was reset.`
    },
  })
}

function partFields(part: string): readonly Field[] {
  if (part === 'host') return [{ name: 'header:host', label: 'Host' }]
  if (!part.startsWith('header:')) return PARTS[part] ?? []
  return [{ name: part, label: `Header ${part.slice('header:'.length)}`, optional: true }]
}

function headerOf(part: string, values: Values): string[] {
  if (part === 'host') return headerOf('header:host', values)
  return part.startsWith('header:') ? [`${part.slice('header:'.length)}: ${values[part] ?? ''}`] : []
}

/** Opens the dialog to undo an override, by the call that it reports. */
export function openUndo({ undo_call, what }: Pick<LiveOverride, 'undo_call' | 'what'>): void {
  const path = (undo_call ?? '').replace(/^DELETE /, '')
  confirmAction({
    title: 'Undo an override',
    verb: 'Undo it now',
    fields: [],
    foretell: () => `From now on this is no longer in force: ${what}`,
    async run(values) {
      await ask(`${path}${query(given(values, 'why', 'by'))}`, { method: 'DELETE' })
      return 'It is undone.'
    },
  })
}
