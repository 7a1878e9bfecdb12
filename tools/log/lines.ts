/** Log files as lines: plain or gzip, a file or standard input, of any size in bounded memory. */
import { createReadStream, statSync } from 'node:fs'
import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { Unusable } from '../command.js'
import type { Io } from '../io.js'
import type { Intake } from './intake.js'

export interface LogFile {
  readonly name: string
  /** Bytes; undefined on standard input. */
  readonly size: number | undefined
}

/** A line longer than this is no log line; its rest is skipped unread. */
const LONGEST_LINE = 1024 * 1024
const NEWLINE = 10

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'access to it is denied',
  ENOTDIR: 'a part of its path is not a folder',
}

/**
 * `-` is standard input.
 * @throws {Unusable} when there is no such file, or it is a folder
 */
export function findLog(name: string): LogFile {
  if (name === '-') return { name: 'standard input', size: undefined }
  try {
    const info = statSync(name)
    if (info.isDirectory()) throw new Unusable(`${name} is a folder. Name the log files in it.`)
    return { name, size: info.isFile() ? info.size : undefined }
  } catch (error) {
    throw error instanceof Unusable ? error : unreadable(name, error)
  }
}

function unreadable(name: string, error: unknown): Unusable {
  const { code = 'unknown error' } = error as NodeJS.ErrnoException
  return new Unusable(`${name} cannot be read: ${REASONS[code] ?? code}.`)
}

/**
 * The lines of a file, many at a time. Lines that are too long, and the rest of a damaged gzip file, count as broken.
 * @param onBytes hears how much of the file was read
 * @throws {Unusable} when it cannot be read, or holds no text
 */
export async function* readLines(
  file: LogFile,
  io: Io,
  intake: Intake,
  onBytes: (bytes: number) => void,
): AsyncGenerator<string[]> {
  const raw =
    file.size === undefined && file.name === 'standard input' ? io.stdin : createReadStream(file.name)
  const splitter = new Splitter(file.name, intake)
  try {
    for await (const chunk of await unzipped(counted(raw as Readable, onBytes))) {
      const lines = splitter.split(chunk)
      if (lines.length > 0) yield lines
    }
  } catch (error) {
    if (error instanceof Unusable) throw error
    const { code = '' } = error as NodeJS.ErrnoException
    if (!code.startsWith('Z_')) throw unreadable(file.name, error)
    splitter.skip('the gzip data is damaged from here on')
  }
  const rest = splitter.end()
  if (rest.length > 0) yield rest
}

async function* counted(raw: Readable, onBytes: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of raw) {
    onBytes((chunk as Buffer).length)
    yield chunk as Buffer
  }
}

/** Gzip is told by its first two bytes, whatever the file is called. */
async function unzipped(chunks: AsyncGenerator<Buffer>): Promise<AsyncIterable<Buffer>> {
  let head = Buffer.alloc(0)
  while (head.length < 2) {
    const { value, done } = await chunks.next()
    if (done) break
    head = Buffer.concat([head, value])
  }
  const whole = prepend(head, chunks)
  if (head[0] !== 0x1f || head[1] !== 0x8b) return whole
  // The error of either stream ends the other, and reaches who reads.
  return pipeline(Readable.from(whole), createGunzip(), () => {})
}

async function* prepend(head: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield head
  yield* rest
}

/** Cuts chunks into lines. */
class Splitter {
  readonly #file: string
  readonly #intake: Intake
  #pending: Buffer[] = []
  #pendingBytes = 0
  #skipping = false
  #isFirst = true

  constructor(file: string, intake: Intake) {
    this.#file = file
    this.#intake = intake
  }

  split(chunk: Buffer): string[] {
    if (this.#isFirst && chunk.includes(0)) throw new Unusable(`${this.#file} is not a log: it is not text.`)
    this.#isFirst = this.#isFirst && chunk.length === 0
    const lines: string[] = []
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      this.#append(chunk.subarray(from, end))
      this.#finish(lines)
      from = end + 1
    }
    this.#append(chunk.subarray(from))
    return lines
  }

  end(): string[] {
    const lines: string[] = []
    if (this.#pendingBytes > 0) this.#finish(lines)
    return lines
  }

  /** What follows, and what was begun, cannot be read. */
  skip(reason: string): void {
    this.#clear()
    this.#intake.lines += 1
    this.#intake.trouble('broken', { file: this.#file, line: 0, reason, text: '' })
  }

  #append(part: Buffer): void {
    if (this.#skipping || part.length === 0) return
    this.#pending.push(part)
    this.#pendingBytes += part.length
    if (this.#pendingBytes <= LONGEST_LINE) return
    this.#skipping = true
    this.skip('the line is longer than 1 MiB')
  }

  #finish(lines: string[]): void {
    if (!this.#skipping) {
      const [only, ...more] = this.#pending
      if (only !== undefined) lines.push((more.length === 0 ? only : Buffer.concat(this.#pending)).toString())
      else lines.push('')
    }
    this.#skipping = false
    this.#clear()
  }

  #clear(): void {
    this.#pending = []
    this.#pendingBytes = 0
  }
}
