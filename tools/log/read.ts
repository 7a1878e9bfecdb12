/** Reads logs as requests in the order they arrived, whatever the order they were written in. */
import type { Io } from '../io.js'
import { TimeHeap } from './heap.js'
import type { LogIntake, Trouble } from './intake.js'
import { findLog, type LogFile, readLines } from './lines.js'

/** What a line describes. */
export interface TimedEntry {
  /** When the request arrived, ms since the epoch. */
  readonly at: number
}

/** A line that cannot be used, and why. */
export interface Unread {
  readonly trouble: Trouble
  readonly reason: string
}

/** Reads one line; undefined when it is about something else. */
export type LineReader<T extends TimedEntry> = (line: string) => T | Unread | undefined

/** A request is logged when it ends, so this many are held back to let an earlier one that took longer go first. */
const MOST_HELD = 20_000

/** No log of a gateway is older; clocks may differ by up to a day. */
const EARLIEST = Date.UTC(2010, 0, 1)
const DAY_MS = 86_400_000

export interface ReadLogsOptions<T extends TimedEntry> {
  readonly names: readonly string[]
  /** Creates a reader for each file, since formats may differ. */
  reader(): LineReader<T>
  take(entry: T): void | Promise<void>
  readonly intake: LogIntake
  readonly io: Io
  /** The present, ms since the epoch. */
  readonly now: number
}

/**
 * Passes every request to `take`, in order of time. Several files are merged, since they may come from several
 * gateways.
 */
export async function readLogs<T extends TimedEntry>(options: ReadLogsOptions<T>): Promise<void> {
  const { intake, io } = options
  const files = options.names.map(findLog)
  const sizes = files.map(({ size }) => size)
  const total = sizes.every(size => size !== undefined)
    ? sizes.reduce((sum, size) => sum + size, 0)
    : undefined
  const bar = progress(io, total)
  let bytes = 0
  const onBytes = (read: number) => {
    bytes += read
    bar.at(bytes)
  }
  try {
    const sorted = new Sorted(options.take, intake)
    const sources = files.map(file => new Source(entriesOf(file, options, onBytes)))
    await Promise.all(sources.map(source => source.fill()))
    for (;;) {
      const source = earliest(sources)
      if (source === undefined) break
      await sorted.add(source.head as T)
      source.next += 1
      if (source.head === undefined) await source.fill()
    }
    await sorted.end()
  } finally {
    bar.end()
  }
}

async function* entriesOf<T extends TimedEntry>(
  file: LogFile,
  { reader, intake, io, now }: ReadLogsOptions<T>,
  onBytes: (bytes: number) => void,
): AsyncGenerator<T[]> {
  const read = reader()
  let number = 0
  for await (const lines of readLines(file, io, intake, onBytes)) {
    const entries: T[] = []
    for (const line of lines) {
      number += 1
      intake.lines += 1
      if (line === undefined) continue
      const entry = line.trim() === '' ? undefined : withPlausibleTime(read(line), now)
      if (entry === undefined) intake.other += 1
      else if ('trouble' in entry) {
        intake.trouble(entry.trouble, { file: file.name, line: number, reason: entry.reason, text: line })
      } else entries.push(entry)
    }
    if (entries.length > 0) yield entries
  }
}

function withPlausibleTime<T extends TimedEntry>(entry: T | Unread | undefined, now: number): typeof entry {
  if (entry === undefined || 'trouble' in entry) return entry
  if (entry.at >= EARLIEST && entry.at <= now + DAY_MS) return entry
  const when = entry.at < EARLIEST ? 'long past' : 'in the future'
  return { trouble: 'clock', reason: `its time is ${when}` }
}

/** One file, with the batch of entries parsed last. */
class Source<T extends TimedEntry> {
  next = 0
  readonly #batches: AsyncGenerator<T[]>
  #batch: readonly T[] = []

  constructor(batches: AsyncGenerator<T[]>) {
    this.#batches = batches
  }

  get head(): T | undefined {
    return this.#batch[this.next]
  }

  async fill(): Promise<void> {
    const { value } = await this.#batches.next()
    this.#batch = value ?? []
    this.next = 0
  }
}

function earliest<T extends TimedEntry>(sources: readonly Source<T>[]): Source<T> | undefined {
  let first: Source<T> | undefined
  for (const source of sources) {
    if (source.head !== undefined && source.head.at < (first?.head?.at ?? Number.POSITIVE_INFINITY)) {
      first = source
    }
  }
  return first
}

/** Passes entries on in order of time, as far as this is possible by holding back a bounded number. */
class Sorted<T extends TimedEntry> {
  readonly #take: (entry: T) => void | Promise<void>
  readonly #intake: LogIntake
  readonly #held = new TimeHeap<T>()
  #clock = Number.NEGATIVE_INFINITY

  constructor(take: (entry: T) => void | Promise<void>, intake: LogIntake) {
    this.#take = take
    this.#intake = intake
  }

  async add(entry: T): Promise<void> {
    this.#held.add(entry.at, entry)
    if (this.#held.size > MOST_HELD) await this.#first()
  }

  async end(): Promise<void> {
    while (this.#held.size > 0) await this.#first()
  }

  async #first(): Promise<void> {
    const { at, value } = this.#held.take() as { at: number; value: T }
    if (at < this.#clock) this.#intake.late += 1
    else this.#clock = at
    this.#intake.used += 1
    this.#intake.at(at)
    const taken = this.#take(value)
    if (taken !== undefined) await taken
  }
}

interface Progress {
  /** `done` of the total so far, in the total's unit. */
  at(done: number): void
  /** Erases the bar. */
  end(): void
}

const EVERY_MS = 100
const WIDEST_BAR = 40

/** @param total undefined when it is not known, as on standard input: then only what is done is shown, in MB */
function progress(io: Io, total: number | undefined, now = () => performance.now()): Progress {
  if (!io.watched) return { at() {}, end() {} }
  let shownAt = Number.NEGATIVE_INFINITY
  return {
    at(done) {
      if (now() - shownAt < EVERY_MS) return
      shownAt = now()
      io.err(`\r\x1b[K${total ? bar(done / total, io.columns) : `${megabytes(done)} read`}`)
    },
    end() {
      io.err('\r\x1b[K')
    },
  }
}

function bar(share: number, columns: number): string {
  const width = Math.max(5, Math.min(WIDEST_BAR, columns - 10))
  const full = Math.min(width, Math.floor(share * width))
  const percent = Math.min(100, Math.floor(share * 100))
  return `[${'#'.repeat(full)}${'-'.repeat(width - full)}] ${percent} %`
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`
}
