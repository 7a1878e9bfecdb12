/** A process that takes requests: it opens the gateway's core, and does what the supervisor asks. */
import cluster from 'node:cluster'
import type { Gateway } from '../../../config/schema.js'
import { type Core, openCore, type Prepared } from '../core.js'
import { type Loaded, listProblems, load, loadOrFail, type Unloadable } from '../load.js'
import { openLog, outliveRejections } from '../process-log.js'
import { Channel, type ToldError, toldError } from './channel.js'

/** What a worker is to be, whatever the files say by now. */
export interface Orders {
  readonly workers: number
  /** Keys the hashes that stand for personal data, in base64: workers that count together must agree. */
  readonly secret: string
  /** Settings that only a start of the whole gateway changes. */
  readonly started: Pick<Gateway, 'listen' | 'redis' | 'store'>
}

/** What the supervisor answers. */
export interface SupervisorCalls {
  orders(): Orders
  /** The address of an embedded service. */
  embedded(name: string): Promise<string>
  /** Whether a worker that read the files as they are marked so may take requests. */
  join(marks: string): Promise<boolean>
  /** Requests are taken at this address. */
  ready(url: string): void
  /** The start went wrong; the process ends. */
  failed(error: ToldError): void
}

/** What a worker answers once it has joined. */
export type WorkerCalls = ReturnType<typeof callsOf>

/** Runs until the supervisor says so, or is gone. */
export async function work(configPath: string): Promise<void> {
  if (cluster.worker === undefined) throw new Error('A worker is started by "sluice serve", not by hand.')
  // A terminal or a service manager may signal every process: the supervisor decides what comes of it.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
  const supervisor = new Channel<SupervisorCalls>(cluster.worker, { drain: () => process.exit(0) })
  try {
    await start(configPath, supervisor)
  } catch (error) {
    await supervisor.ask('failed', toldError(error as Error))
    process.exit(1)
  }
}

async function start(configPath: string, supervisor: Channel<SupervisorCalls>): Promise<void> {
  const { workers, secret, started } = await supervisor.ask('orders')
  const log = openLog(process.pid)
  const loaded = await loadOrFail(configPath, process.env, log)
  if (loaded.plugins.names.length > 0) outliveRejections(log)
  const core = await openCore({
    first: asStarted(loaded, started),
    workers,
    embedded: name => supervisor.ask('embedded', name),
    secret: Buffer.from(secret, 'base64'),
    log,
  })
  supervisor.answers = callsOf(core, () => load(configPath, process.env, log, { running: loaded.plugins }))
  if (!(await supervisor.ask('join', marksOf(loaded)))) process.exit(0)
  await supervisor.ask('ready', await core.listen())
}

/** One that takes another's place must be its like, though the files may ask for a restart by now. */
function asStarted(
  loaded: Loaded,
  { listen, redis, store: { deadline, instances } }: Orders['started'],
): Loaded {
  const { gateway } = loaded.config
  const store = { ...gateway.store, deadline, instances }
  return { ...loaded, config: { ...loaded.config, gateway: { ...gateway, listen, redis, store } } }
}

/** Two loads with the same marks have read the same. */
export function marksOf({ sources }: Pick<Loaded, 'sources'>): string {
  return JSON.stringify([...sources])
}

function callsOf(core: Core, read: () => Promise<Loaded | Unloadable>) {
  const { metrics, inspected } = core
  let next: ReturnType<typeof openNext> | undefined

  async function openNext(): Promise<{ prepared: Prepared; marks: string }> {
    const loaded = await read()
    if ('problems' in loaded) throw new Error(listProblems(loaded.problems))
    try {
      return { prepared: await core.prepare(loaded), marks: marksOf(loaded) }
    } catch (error) {
      await loaded.compiled.close()
      throw error
    }
  }

  return {
    metrics: () => metrics.snapshot(),
    backends: () => core.inForce.backends,
    slots: () => inspected.slots(),
    counters: inspected.counters,
    reset: inspected.reset,
    explain: core.explain,
    forget: core.forget,
    /** Reads the files, and keeps what they say for `commit` or `discard`; answers with their marks. */
    async prepare(): Promise<string> {
      next = openNext()
      return (await next).marks
    },
    commit: async () => (await next)?.prepared.commit(),
    discard: async () => (await next)?.prepared.discard(),
    /** Ends the process. */
    async drain(): Promise<void> {
      await core.drain()
      process.exit(0)
    },
  }
}
