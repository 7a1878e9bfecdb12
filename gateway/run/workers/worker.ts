/** A process that takes requests: it opens the gateway's core, and does what the supervisor asks. */
import cluster from 'node:cluster'
import type { FileContents } from '../../../config/files.js'
import type { Gateway } from '../../../config/schema.js'
import { type Core, openCore, type Prepared } from '../core.js'
import { type Loaded, listProblems, load, loadOrFail, type Unloadable } from '../load.js'
import { openLog, outliveRejections } from '../process-log.js'
import { Channel, type ToldError, toldError } from './channel.js'
import { endWith } from './orphan-watch.js'

/** What a worker is to be, whatever the files say by now. */
export interface Orders {
  readonly workers: number
  /** Keys the hashes that stand for personal data, in base64: workers that count together must agree. */
  readonly secret: string
  /** Settings that only a start of the whole gateway changes. */
  readonly started: Pick<Gateway, 'listen' | 'redis' | 'store' | 'tracing'>
  /** What is in force: the files may hold something else by now, or something broken. */
  readonly contents: FileContents
  /** Tells what is in force from what was before. */
  readonly change: number
  /** Process id. */
  readonly supervisor: number
}

/** What the supervisor answers. */
export interface SupervisorCalls {
  orders(): Orders
  /** The address of an embedded service. */
  embedded(name: string): Promise<string>
  /** Whether a worker that was ordered at this change may take requests. */
  join(change: number): Promise<boolean>
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
  // A terminal or service manager may signal every process; the supervisor decides what happens.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
  const supervisor = new Channel<SupervisorCalls>(cluster.worker, {
    ping: () => undefined,
    drain: () => process.exit(0),
  })
  try {
    await start(configPath, supervisor)
  } catch (error) {
    await supervisor.ask('failed', toldError(error as Error))
    process.exit(1)
  }
}

async function start(configPath: string, supervisor: Channel<SupervisorCalls>): Promise<void> {
  const orders = await supervisor.ask('orders')
  const { workers, secret, started, contents, change } = orders
  endWith(orders.supervisor)
  const log = openLog(process.pid)
  const loaded = await loadOrFail(configPath, process.env, log, { contents })
  if (loaded.plugins.names.length > 0) outliveRejections(log)
  const core = await openCore({
    first: asStarted(loaded, started),
    workers,
    embedded: name => supervisor.ask('embedded', name),
    secret: Buffer.from(secret, 'base64'),
    log,
  })
  const read = (contents: FileContents) =>
    load(configPath, process.env, log, { running: loaded.plugins, contents })
  supervisor.answers = callsOf(core, read)
  if (!(await supervisor.ask('join', change))) process.exit(0)
  await supervisor.ask('ready', await core.listen())
}

/** One that takes another's place must be its like, though the files may ask for a restart by now. */
function asStarted(
  loaded: Loaded,
  { listen, redis, tracing, store: { deadline, instances } }: Orders['started'],
): Loaded {
  const { gateway } = loaded.config
  const store = { ...gateway.store, deadline, instances }
  return { ...loaded, config: { ...loaded.config, gateway: { ...gateway, listen, redis, tracing, store } } }
}

function callsOf(core: Core, read: (contents: FileContents) => Promise<Loaded | Unloadable>) {
  const { metrics, inspected } = core
  let next: Promise<Prepared> | undefined

  async function open(contents: FileContents): Promise<Prepared> {
    const loaded = await read(contents)
    if ('problems' in loaded) throw new Error(listProblems(loaded.problems))
    try {
      return await core.prepare(loaded)
    } catch (error) {
      await loaded.compiled.close()
      throw error
    }
  }

  return {
    ping: () => undefined,
    metrics: () => metrics.snapshot(),
    backends: () => core.inForce.backends,
    slots: () => inspected.slots(),
    live: core.live,
    history: core.history,
    counters: inspected.counters,
    reset: inspected.reset,
    explain: core.explain,
    forget: core.forget,
    /** Opens what the files said, for `commit` or `discard`. */
    async prepare(contents: FileContents): Promise<void> {
      next = open(contents)
      await next
    },
    commit: async () => (await next)?.commit(),
    discard: async () => (await next)?.discard(),
    /** Ends the process. */
    async drain(): Promise<void> {
      await core.drain()
      process.exit(0)
    },
  }
}
