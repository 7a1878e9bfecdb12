/** Webhook receivers that fail: the directory keeps working, and after recovery they get every event, in order. */
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Fault, faultProxy } from '../../test/helpers/faults.js'
import { startApp } from '../../test/helpers/http.js'
import { type Scope, scoped } from '../../test/helpers/scope.js'
import { type DirectoryService, startDirectory } from './directory.js'
import { cell, type Measured, type Part, timeCell, verdictRow, waitedMs, warningsOf } from './row.js'

const USERS = 5
const LASTS_MS = 1_500
/** Two retry waits, of 2 s and 5 s plus a quarter, for an attempt made just before the recovery. */
const DELIVERED_WITHIN_MS = 10_000
const INTAKE_WITHIN_MS = 500
const COLUMNS = ['intake returned', 'longest response', 'events, in order', 'all delivered after', 'warnings']

interface ReceiverFault {
  /** What happens to connections to the receiver. */
  readonly network?: Fault
  /** What it answers; `elsewhere` is another address. */
  answer?(res: ServerResponse, elsewhere: string): unknown
}

const FAULTS: Record<string, ReceiverFault> = {
  refused: { network: { kind: 'refuse' } },
  reset: { network: { kind: 'reset' } },
  slow: { network: { kind: 'latency', ms: 500 } },
  500: { answer: res => res.writeHead(500).end() },
  redirect: { answer: (res, elsewhere) => res.writeHead(307, { location: elsewhere }).end() },
}

export const receiverSections: Part = async ({ wants }) => {
  const faults = Object.entries(FAULTS).filter(([name]) => wants(`receiver / ${name}`))
  if (faults.length === 0) return []
  return scoped(async t => {
    const service = await startDirectory(t, { WEBHOOK_ALLOW_PRIVATE: 'true', WEBHOOK_ALLOW_HTTP: 'true' })
    const rows = await Promise.all(
      faults.map(([name, fault]) => verdictRow('receiver', name, () => measure(t, fault, service))),
    )
    const note = `A gateway with the embedded directory; ${USERS} new users while the receiver fails for ${LASTS_MS / 1000} s. All receivers fail at once.`
    return [{ title: 'Webhook receivers', note, columns: COLUMNS, rows }]
  })
}

async function measure(
  t: Scope,
  { network, answer }: ReceiverFault,
  { gateway, directory }: DirectoryService,
): Promise<Measured> {
  let isIll = true
  let elsewhere = 0
  const sequences: number[] = []
  const trap = await startApp(t, (_req, res) => {
    elsewhere += 1
    res.end()
  })
  const app = await startApp(t, async (req, res) => {
    const body = (await req.toArray()).join('')
    if (isIll && answer) return void answer(res, trap)
    sequences.push(JSON.parse(body).sequence)
    res.end()
  })
  const proxy = await faultProxy(Number(new URL(app).port))
  t.teardown(() => proxy.stop())
  const webhook = { webhook_url: `http://127.0.0.1:${proxy.port}/`, webhook_secret: 'chaos-secret-0123' }
  const one = await directory(webhook)
  if (network) await proxy.set(network)

  const waited = waitedMs([gateway])
  const added: Awaited<ReturnType<typeof one.addUser>>[] = []
  for (let i = 0; i < USERS; i += 1) {
    added.push(await one.addUser(`u${i}@example.com`))
    await sleep(LASTS_MS / USERS)
  }
  isIll = false
  await proxy.set({ kind: 'pass' })
  const ended = performance.now()
  const until = () => ended + DELIVERED_WITHIN_MS + waitedMs([gateway]) - waited
  while (sequences.length < USERS && performance.now() < until()) await sleep(50)
  const tookMs = performance.now() - ended
  const lateMs = waitedMs([gateway]) - waited

  const order = [...new Set(sequences)].join(' ')
  const statuses = [...new Set(added.map(({ status }) => status))].join(', ')
  const longest = Math.max(...added.map(({ ms }) => ms))
  const isWhole = order === Array.from({ length: USERS }, (_, i) => i + 1).join(' ') && elsewhere === 0
  const warnings = warningsOf(gateway).length
  const cells = [
    cell(statuses, 201, statuses === '201'),
    timeCell(longest, INTAKE_WITHIN_MS, lateMs),
    cell(elsewhere > 0 ? `${elsewhere} elsewhere` : order, 'all, none elsewhere', isWhole),
    cell(`${(tookMs / 1000).toFixed(1)} s`, `${DELIVERED_WITHIN_MS / 1000} s`, sequences.length >= USERS),
    cell(warnings, 0, warnings === 0),
  ]
  return { cells, lateMs }
}
