/** The dialog that gives one project a limit of its own, and what the page shows of such limits. */
import type { LiveOverride, LiveRule } from '../admin/live-snapshot.js'
import { send } from './api.js'
import { confirmAction, type Field, given, type Values } from './dialog.js'
import { end, endWords, LENGTH } from './override-forms.js'

/** The buckets that can have a limit, by name. */
export function bucketsIn(rules: readonly LiveRule[]): string[] {
  return rules.filter(({ kind, trial }) => kind === 'project-limits' && !trial).map(({ id }) => id)
}

/** True for a project that can have a limit of its own: callers without a project cannot. */
export function isNegotiable(project: string): boolean {
  return !/^(client|host|unknown):/.test(project)
}

/** The limits of a project that can be undone. */
export function limitsOf(project: string, overrides: readonly LiveOverride[]): LiveOverride[] {
  const call = `DELETE /projects/${project}/overrides/`
  return overrides.filter(({ undo_call }) => undo_call?.startsWith(call))
}

const UNLIMITED = 'unlimited'
const NUMBERS: readonly Field[] = [
  { name: 'burst', label: 'Requests a second', optional: true },
  {
    name: 'sustained',
    label: 'Requests a minute',
    hint: 'What is left empty stays as in the files. Other windows: sluice override.',
    optional: true,
  },
]

/** @param shown the project or bucket that it was opened for */
export function openNegotiation(buckets: readonly string[], shown: Values = {}): void {
  const named = ({ project = '', bucket = '' }: Values) => [project || '…', bucket] as const
  confirmAction({
    title: 'Negotiate a limit',
    verb: 'Set it now',
    fields: [
      { name: 'project', label: 'Project', value: shown.project ?? '' },
      {
        name: 'bucket',
        label: 'Bucket',
        value: shown.bucket ?? '',
        choices: buckets.map(name => [name, name] as const),
      },
      {
        name: 'limit',
        label: 'Limit',
        choices: [
          ['numbers', 'the numbers below'],
          [UNLIMITED, 'no limit'],
        ],
      },
      ...NUMBERS,
      LENGTH,
    ],
    foretell(values) {
      const [project, bucket] = named(values)
      const what =
        values.limit === UNLIMITED
          ? `Requests of ${project} in ${bucket} are not counted`
          : `${project} may send ${numberWords(values)} in ${bucket}`
      return `${what}, from now on, ${endWords(values)}. What was used stays used, and the files stay as they are.`
    },
    async run(values) {
      const [project, bucket] = named(values)
      const quota = values.limit === UNLIMITED ? { unlimited: true } : numbers(values)
      const body = { ...quota, ...end(values), ...given(values, 'why', 'by') }
      const path = `/projects/${encodeURIComponent(project)}/overrides/${encodeURIComponent(bucket)}`
      await send('PUT', path, body)
      return `${project} has a limit of its own for ${bucket} now.`
    },
  })
}

/** What is no number is sent as it is, for the gateway to say what is wrong with it. */
function numbers(values: Values): Record<string, number | string> {
  const written = given(values, ...NUMBERS.map(({ name }) => name))
  return Object.fromEntries(
    Object.entries(written).map(([name, text]) => [name, /^\d+$/.test(text) ? Number(text) : text]),
  )
}

function numberWords(values: Values): string {
  const words = NUMBERS.flatMap(({ name, label }) =>
    values[name] ? [`${values[name]} ${label.toLowerCase()}`] : [],
  )
  return words.length === 0 ? '…' : words.join(' and ')
}
