/** Manages the worker processes: starts, watches, replaces and drains them. */
import cluster, { type Worker } from 'node:cluster'
import { fileURLToPath } from 'node:url'
import { Failure } from '../../errors.js'
import type { Log } from '../../types.js'
import { Channel, errorOf } from './channel.js'
import { Heartbeat } from './heartbeat.js'
import type { SupervisorCalls, WorkerCalls } from './worker.js'

export interface WorkerPoolOptions {
  readonly size: number
  readonly configPath: string
  /** How long a worker may fail to answer. */
  readonly timeoutMs: number
  /** Calls that are the same for every worker. */
  readonly calls: Omit<SupervisorCalls, 'join' | 'ready' | 'failed'>
  /** Calls `join` when a worker that got its orders at this change has the configuration in force, and none is on its way. */
  admit(member: Member, change: number, join: () => void): Promise<void>
  /** A worker has ended; its id is not used again. */
  ended(id: number): void
  /** After all had started: no worker is left, and none can be started. */
  hopeless(error: Error): void
  readonly log: Log
}

/** A worker that takes requests, or is about to. */
export interface Member {
  readonly id: number
  readonly pid: number
  readonly startedAt: Date
  readonly channel: Channel<WorkerCalls>
  /** False while it has not answered for a while. */
  answers(): boolean
}

/** Time for a process to start and load the configuration, on a busy machine. */
const START_MS = 60_000
/** Number of ends in a row, each soon after its start, after which further starts are considered hopeless. */
const MOST_FAILURES = 5
/** A worker that lived this long had started properly. */
const WELL_MS = 10_000
const FIRST_DELAY_MS = 100
const LONGEST_DELAY_MS = 30_000
/** Time for a worker to close its resources, beyond the deadline for requests. */
const CLOSING_MS = 10_000

export class WorkerPool {
  readonly #options: WorkerPoolOptions
  readonly #alive = new Map<Worker, { channel: Channel<WorkerCalls>; heartbeat: Heartbeat }>()
  readonly #members = new Map<number, Member>()
  readonly #ready = new Set<number>()
  readonly #restarts = new Set<NodeJS.Timeout>()
  readonly #started = new Latch<string>()
  readonly #drained = new Latch<void>()
  #failures = 0
  #hasStarted = false
  #isDraining = false

  constructor(options: WorkerPoolOptions) {
    this.#options = options
  }

  get members(): Member[] {
    return [...this.#members.values()]
  }

  /** Why no request is accepted just now; undefined while one worker does. */
  get trouble(): string | undefined {
    const ready = this.members.filter(({ id }) => this.#ready.has(id))
    if (ready.some(({ answers }) => answers())) return undefined
    if (ready.length === 0) return 'no worker is left: others are being started'
    return 'no worker answers: unless they recover, others take their place'
  }

  /** Resolves to the address when all workers take requests; rejects with the error of the first that cannot start. */
  start(): Promise<string> {
    const exec = fileURLToPath(new URL('./main.js', import.meta.url))
    // Each worker accepts from the shared socket itself. Otherwise connections that the supervisor had accepted for a
    // worker that dies would stay open for ever. Besides, a busy worker thus leaves connections to the others.
    cluster.schedulingPolicy = cluster.SCHED_NONE
    cluster.setupPrimary({ exec, args: [this.#options.configPath] })
    for (let i = 0; i < this.#options.size; i += 1) this.#fork()
    return this.#started.promise
  }

  /** Lets requests finish; resolves when every worker has ended, at the latest some time after the deadline. */
  async drain(deadlineMs: number): Promise<void> {
    this.#isDraining = true
    for (const restart of this.#restarts) clearTimeout(restart)
    for (const { channel, heartbeat } of this.#alive.values()) {
      heartbeat.stop()
      channel.ask('drain').catch(() => undefined)
    }
    const kill = setTimeout(() => {
      for (const worker of this.#alive.keys()) worker.process.kill('SIGKILL')
    }, deadlineMs + CLOSING_MS)
    if (this.#alive.size > 0) await this.#drained.promise
    clearTimeout(kill)
  }

  #fork(): void {
    const { calls, admit, timeoutMs, log } = this.#options
    const worker = cluster.fork()
    const { id } = worker
    const { pid = 0 } = worker.process
    const startedAt = new Date()
    const since = performance.now()
    const channel: Channel<WorkerCalls> = new Channel(worker, {
      ...calls,
      orders: () => {
        if (this.#isDraining) throw new Failure('The gateway is shutting down.')
        return calls.orders()
      },
      join: (change: number): Promise<void> => {
        const member: Member = { id, pid, startedAt, channel, answers: () => heartbeat.answers }
        return admit(member, change, () => {
          // It may have ended meanwhile.
          if (!this.#alive.has(worker)) return
          clearTimeout(starting)
          heartbeat.start()
          this.#members.set(id, member)
        })
      },
      ready: (url: string) => this.#takesRequests(id, pid, url),
      failed: (error: Parameters<SupervisorCalls['failed']>[0]) => this.#cannotStart(pid, errorOf(error)),
    } satisfies SupervisorCalls)
    const kill = (why: string, ms: number) => {
      log.error({ worker: pid, ms }, `A worker ${why}: it is killed, and another takes its place`)
      worker.process.kill('SIGKILL')
    }
    const starting = setTimeout(() => kill('has not started', START_MS), START_MS)
    const heartbeat = new Heartbeat({
      ask: () => channel.ask('ping'),
      timeoutMs,
      silent: () => kill('does not answer', timeoutMs),
    })
    this.#alive.set(worker, { channel, heartbeat })
    const end = (code: number | null, signal: string | null) => {
      if (!this.#alive.delete(worker)) return
      clearTimeout(starting)
      heartbeat.stop()
      this.#members.delete(id)
      this.#ready.delete(id)
      this.#options.ended(id)
      this.#ended({ worker: pid, code, signal }, performance.now() - since)
    }
    worker.on('exit', end)
    // A process that could not even be spawned emits no `exit`.
    worker.on('error', error => {
      log.error({ worker: pid, err: error }, 'A worker cannot be reached')
      if (pid === 0) end(null, null)
    })
  }

  #takesRequests(id: number, pid: number, url: string): void {
    this.#ready.add(id)
    if (this.#hasStarted) this.#options.log.info({ worker: pid }, 'A worker takes requests')
    else if (this.#ready.size === this.#options.size) {
      this.#hasStarted = true
      this.#started.resolve(url)
    }
  }

  #cannotStart(pid: number, error: Error): void {
    if (this.#isDraining) return
    // What fails at the first start will fail at the next one, too.
    if (!this.#hasStarted) this.#started.reject(error)
    else this.#options.log.error({ worker: pid, reason: error.message }, 'A worker could not start')
  }

  #ended(how: { worker: number; code: number | null; signal: string | null }, livedMs: number): void {
    if (this.#isDraining) {
      if (this.#alive.size === 0) this.#drained.resolve()
      return
    }
    this.#failures = livedMs < WELL_MS ? this.#failures + 1 : 0
    if (this.#failures >= MOST_FAILURES && this.#ready.size === 0) {
      const code = how.signal ?? `exit code ${how.code}`
      this.#giveUp(new Failure(`Workers end as soon as they are started (${code}); the log may say why.`))
      return
    }
    const growing = FIRST_DELAY_MS * 2 ** (this.#failures - 1)
    const delayMs = this.#failures === 0 ? 0 : Math.min(growing, LONGEST_DELAY_MS)
    this.#options.log.warn({ ...how, delayMs }, 'A worker ended: another one takes its place')
    const restart = setTimeout(() => {
      this.#restarts.delete(restart)
      this.#fork()
    }, delayMs)
    this.#restarts.add(restart)
  }

  #giveUp(error: Error): void {
    if (this.#hasStarted) this.#options.hopeless(error)
    else this.#started.reject(error)
  }
}

/** A promise that is settled from outside. */
class Latch<T> {
  resolve!: (value: T) => void
  reject!: (error: Error) => void
  readonly promise = new Promise<T>((resolve, reject) => {
    this.resolve = resolve
    this.reject = reject
  })
}
