/** All faults of all forms of Redis, a row for each. */
import { waitUntil } from '../../dist/test/helpers/wait.js'
import { say } from '../lib/run.mjs'
import { startWorkingApp } from './app.mjs'
import { startGateways } from './gateways.mjs'
import { COLUMNS, runCell } from './redis-cell.mjs'
import { FAULTS, SETTINGS } from './redis-faults.mjs'
import { FORMS } from './redis-forms.mjs'
import { verdictRow } from './row.mjs'
import { scope } from './scope.mjs'
import { PROJECTS } from './settings.mjs'

const TITLES = {
  single: 'Redis',
  'one address': 'A Cluster behind one address',
  tls: 'Redis over TLS',
  sentinel: 'Redis with Sentinel',
  cluster: 'Redis Cluster',
}
/** Enough to see each form lose its master and its network; the other faults do not depend on the form. */
const SHORT = {
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

/**
 * One function for each form. `wants` says whether a cell is run, by `form / fault`; the function resolves to sections
 * of the page: `title`, `columns`, `rows` of `name` and `cells`.
 */
export const redisParts = Object.entries(FORMS).map(([name, start]) => async ({ short, wants }) => {
  const faults = Object.entries(FAULTS).filter(
    ([fault, { forms }]) =>
      (forms?.includes(name) ?? true) &&
      (!short || SHORT[name].includes(fault)) &&
      wants(`${name} / ${fault}`),
  )
  return faults.length > 0 ? [await section(name, start, faults)] : []
})

async function section(name, start, faults) {
  const rows = []
  // When the gateways did not recover, the remaining cells run on a fresh Redis.
  while (rows.length < faults.length) {
    const t = scope()
    const left = faults.slice(rows.length)
    await onOne(t, name, start, left, rows).catch(error => rows.push(failed(faults[rows.length][0], error)))
    await t.end().catch(error => rows.push(failed(`after ${rows.at(-1).name}`, error)))
  }
  return { title: TITLES[name], columns: COLUMNS, note: `Two gateways with ${SETTINGS}.`, rows }
}

/** The row of a cell that could not be measured. */
function failed(name, error) {
  const told = [error.message, error.cause?.message].filter(Boolean).join(': ')
  say(`BROKEN ${name}: ${told}`)
  return { name, cells: COLUMNS.map((_, i) => ({ told: i === 0 ? told : '', isKept: i > 0 })) }
}

/** Runs cells on one Redis and one pair of gateways, up to the first that breaks a promise. */
async function onOne(t, name, start, faults, rows) {
  const form = await start()
  t.teardown(() => form.stop())
  const app = await startWorkingApp(t)
  const gateways = await startGateways(t, form, app.url)
  const unused = [...PROJECTS]
  const projects = {
    next() {
      const project = unused.pop()
      if (project === undefined) throw new Error('all projects are used up: settings.mjs needs more of them')
      return form.counts(project) ? project : projects.next()
    },
  }
  for (const [title, fault] of faults) {
    let mend
    const row = await verdictRow(name, title, async () => {
      await mend?.()
      await waitUntil('the gateways to count together', () => gateways.countTogether(projects.next()), 20_000)
      const measured = await runCell({ fault, form, gateways, app, projects })
      mend = measured.mend
      for (const complaint of measured.complaints) say(`  ${complaint}`)
      return { ...measured, more: `${measured.sent} requests, ` }
    })
    rows.push(row)
    if (!row.cells.every(({ isKept }) => isKept)) return
    // The last cell needs no repair.
    if (title !== faults.at(-1)[0]) await mend()
  }
}
