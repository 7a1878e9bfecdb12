/** The directory on a MongoDB-protocol server that is unreachable, slow, reset or restarted. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ChildServer } from '../../test/helpers/child-server.js'
import { type Fault, type FaultProxy, faultProxy } from '../../test/helpers/faults.js'
import { startMongo } from '../../test/helpers/mongo.js'
import { scoped } from '../../test/helpers/scope.js'
import { Failure, say } from '../lib/run.mjs'
import { type Answer, type ChaosDirectory, type DirectoryService, startDirectory } from './directory.js'
import { cell, type Measured, type Part, timeCell, verdictRow, waitedMs, warningsOf } from './row.js'

const LASTS_MS = 3_000
const BACK_WITHIN_MS = 15_000
/** The driver's own timeouts (services/directory/store/mongodb-connection.ts), one after the other. */
const ANSWER_WITHIN_MS = 15_500
const EVERY_MS = 200

interface Parts {
  readonly proxy: FaultProxy
  readonly server: ChildServer
}
interface MongoFault {
  begin(parts: Parts): Promise<void>
  end(parts: Parts): Promise<void>
}

const on = (fault: Fault): MongoFault => ({
  begin: ({ proxy }) => proxy.set(fault),
  end: ({ proxy }) => proxy.set({ kind: 'pass' }),
})

const FAULTS: Record<string, MongoFault> = {
  'latency 200 ms': on({ kind: 'latency', ms: 200 }),
  refused: on({ kind: 'refuse' }),
  'black hole': on({ kind: 'blackhole' }),
  reset: on({ kind: 'reset' }),
  'half-open': on({ kind: 'halfopen' }),
  'killed and restarted': { begin: ({ server }) => server.kill(), end: ({ server }) => server.start() },
}
const IN_SHORT = ['reset', 'killed and restarted']
const COLUMNS = [
  'reads got',
  'writes got',
  'longest response',
  'back after',
  'acknowledged users found',
  'warnings',
]

export const mongoSections: Part = async ({ short, wants }) => {
  const faults = Object.entries(FAULTS).filter(
    ([name]) => (!short || IN_SHORT.includes(name)) && wants(`mongodb / ${name}`),
  )
  if (faults.length === 0) return []
  const server = await startMongo()
  if (server === undefined) {
    if (process.env.CI === 'true')
      throw new Failure('CI needs a server of MongoDB’s protocol: `npm run services`')
    say('Skipped: no server of MongoDB’s protocol; `npm run services` builds one')
    return []
  }
  return scoped(async t => {
    t.teardown(() => server.stop())
    const proxy = await faultProxy(server.port)
    t.teardown(() => proxy.stop())
    const url = `mongodb://127.0.0.1:${proxy.port}/chaos`
    const { gateway, directory } = await startDirectory(t, { MONGODB_URL: url })
    const rows = []
    for (const [name, fault] of faults) {
      const run = async () => measure(fault, { proxy, server }, gateway, await directory())
      rows.push(await verdictRow('mongodb', name, run))
    }
    const note = `A gateway with the embedded directory; five reads and five new users a second before, during and after a fault of ${LASTS_MS / 1000} s.`
    return [{ title: 'MongoDB’s protocol', note, columns: COLUMNS, rows }]
  })
}

async function measure(
  fault: MongoFault,
  parts: Parts,
  gateway: DirectoryService['gateway'],
  directory: ChaosDirectory,
): Promise<Measured> {
  const waited = waitedMs([gateway])
  const seen: Record<'reads' | 'writes', Answer[]> = { reads: [], writes: [] }
  let isOn = true
  let backAt: number | undefined
  let ended = Number.POSITIVE_INFINITY
  const asking: Promise<unknown>[] = []
  const working = (async () => {
    for (let i = 0; isOn; i += 1) {
      asking.push(directory.read().then(answer => seen.reads.push(answer)))
      const write = directory.addUser(`u${i}@example.com`).then(answer => {
        seen.writes.push(answer)
        if (answer.status === 201 && performance.now() > ended) backAt ??= performance.now()
      })
      asking.push(write)
      await sleep(EVERY_MS)
    }
  })()
  await sleep(1_000)
  await fault.begin(parts)
  await sleep(LASTS_MS)
  await fault.end(parts)
  ended = performance.now()
  while (backAt === undefined && performance.now() < ended + BACK_WITHIN_MS) await sleep(50)
  await sleep(1_000)
  isOn = false
  await working
  await Promise.all(asking)
  const lateMs = waitedMs([gateway]) - waited

  const longest = Math.max(...[...seen.reads, ...seen.writes].map(({ ms }) => ms))
  const acknowledged = seen.writes.filter(({ status }) => status === 201).length
  const found = await directory.users()
  const warnings = warningsOf(gateway).length
  const back = backAt === undefined ? 'not back' : `${((backAt - ended) / 1000).toFixed(1)} s`
  const cells = [
    cell(countsOf(seen.reads), '200, or 503 with Retry-After', areHonest(seen.reads, 200)),
    cell(countsOf(seen.writes), '201, or 503 with Retry-After', areHonest(seen.writes, 201)),
    timeCell(longest, ANSWER_WITHIN_MS, lateMs),
    cell(back, `${BACK_WITHIN_MS / 1000} s`, backAt !== undefined),
    cell(`${found} of ${acknowledged}`, 'all', found >= acknowledged),
    cell(warnings, 0, warnings === 0),
  ]
  return { cells, lateMs }
}

/** Every response either confirms success or says when to retry. */
function areHonest(answers: readonly Answer[], good: number): boolean {
  return answers.every(
    ({ status, headers }) => status === good || (status === 503 && Number(headers['retry-after']) > 0),
  )
}

function countsOf(answers: readonly Answer[]): string {
  const times = new Map<Answer['status'], number>()
  for (const { status } of answers) times.set(status, (times.get(status) ?? 0) + 1)
  return [...times].map(([status, many]) => `${many} × ${status}`).join(', ')
}
