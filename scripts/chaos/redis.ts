/** All faults of all forms of Redis, a row for each. */
import { type Scope, scoped } from '../../test/helpers/scope.js'
import { waitUntil } from '../../test/helpers/wait.js'
import { say } from '../lib/run.mjs'
import { COLUMNS, type MeasuredCell, runCell } from './redis-cell.js'
import { FAULTS, type RedisFault } from './redis-faults.js'
import { FORMS, type RedisForm } from './redis-forms.js'
import { PROJECTS, SETTINGS, startGateways, startWorkingApp } from './redis-setup.js'
import { type Part, type Row, type Section, verdictRow } from './row.js'

const TITLES: Record<string, string> = {
  single: 'Redis',
  'one address': 'A Cluster behind one address',
  tls: 'Redis over TLS',
  sentinel: 'Redis with Sentinel',
  cluster: 'Redis Cluster',
}
/** Enough to see each form lose its master and its network; the other faults do not depend on the form. */
const SHORT: Record<string, readonly string[]> = {
  single: [
    'latency 30 ms',
    'half-open',
    'restart, empty',
    'out of memory',
    'SCRIPT FLUSH',
    'busy script, SCRIPT KILL',
  ],
  'one address': ['restart, empty'],
  tls: ['reset'],
  sentinel: ['SENTINEL FAILOVER'],
  cluster: ['slot moved', 'replica promoted'],
}

/** A part for each form. */
export const redisParts = Object.entries(FORMS).map(
  ([name, start]): Part =>
    async ({ short, wants }) => {
      const faults = Object.entries(FAULTS).filter(
        ([fault, { forms }]) =>
          (forms?.includes(name) ?? true) &&
          (!short || SHORT[name]?.includes(fault)) &&
          wants(`${name} / ${fault}`),
      )
      return faults.length > 0 ? [await section(name, start, faults)] : []
    },
)

type NamedFault = readonly [name: string, fault: RedisFault]
type Start = (t: Scope) => Promise<RedisForm>

async function section(name: string, start: Start, faults: readonly NamedFault[]): Promise<Section> {
  const rows: Row[] = []
  // When the gateways did not recover, the remaining cells run on a fresh Redis.
  while (rows.length < faults.length) {
    const left = faults.slice(rows.length)
    await scoped(async t => {
      await onOne(t, name, start, left, rows).catch(error =>
        rows.push(failed(faults[rows.length]?.[0] ?? name, error)),
      )
    }).catch(error => rows.push(failed(`after ${rows.at(-1)?.name}`, error)))
  }
  return { title: TITLES[name] ?? name, columns: COLUMNS, note: `Two gateways with ${SETTINGS}.`, rows }
}

/** The row of a cell that could not be measured. */
function failed(name: string, error: Error): Row {
  const text = [error.message, (error.cause as Error | undefined)?.message].filter(Boolean).join(': ')
  say(`BROKEN ${name}: ${text}`)
  return { name, cells: COLUMNS.map((_, i) => ({ text: i === 0 ? text : '', holds: i > 0 })) }
}

/** Runs cells on one Redis and one pair of gateways, up to the first that breaks a promise. */
async function onOne(
  t: Scope,
  name: string,
  start: Start,
  faults: readonly NamedFault[],
  rows: Row[],
): Promise<void> {
  const form = await start(t)
  const app = await startWorkingApp(t)
  const gateways = await startGateways(t, form, app.url)
  const unused = [...PROJECTS]
  const nextProject = (): string => {
    const project = unused.pop()
    if (project === undefined) throw new Error('all projects are used up: redis-setup.ts needs more of them')
    return form.counts(project) ? project : nextProject()
  }
  for (const [title, fault] of faults) {
    let measured: MeasuredCell | undefined
    const row = await verdictRow(name, title, async () => {
      await measured?.mend()
      await waitUntil('the gateways to count together', () => gateways.countTogether(nextProject()), 20_000)
      measured = await runCell({ fault, form, gateways, app, nextProject })
      for (const complaint of measured.complaints) say(`  ${complaint}`)
      return { ...measured, more: `${measured.sent} requests, ` }
    })
    rows.push(row)
    if (!row.cells.every(({ holds }) => holds)) return
    // The last cell needs no repair.
    if (title !== faults.at(-1)?.[0]) await measured?.mend()
  }
}
