/** Log files as lines: plain or gzip, a file or standard input, of any size in bounded memory. */
import { createReadStream, statSync } from 'node:fs'
import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { Unusable } from '../command.js'
import { unreadable } from '../files.js'
import type { Io } from '../io.js'
import { LONGEST_SHOWN, type LogIntake } from './intake.js'

export interface LogFile {
  readonly name: string
  /** Bytes; undefined on standard input. */
  readonly size: number | undefined
}

/** Undefined for a line that was skipped and reported. */
export type Line = string | undefined

/** A longer line is not a log line; its rest is skipped unread. */
const LONGEST_LINE = 1024 * 1024
const NEWLINE = 10

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

/**
 * The lines of a file, many at a time; undefined for one that is too long, which counts as broken, as does the rest of
 * a damaged gzip file.
 * @param onBytes called with the size of each chunk that was read
 * @throws {Unusable} when the file cannot be read, or is not text
 */
export async function* readLines(
  file: LogFile,
  io: Io,
  intake: LogIntake,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Line[]> {
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
    const reason = 'the gzip data is damaged from here on'
    intake.isCut = true
    intake.lines += 1
    intake.trouble('broken', { file: file.name, line: 0, reason, text: '' })
    return
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

/** Gzip is recognized by its first two bytes, whatever the file's name. */
async function unzipped(chunks: AsyncGenerator<Buffer>): Promise<AsyncIterable<Buffer>> {
  let head = Buffer.alloc(0)
  while (head.length < 2) {
    const { value, done } = await chunks.next()
    if (done) break
    head = Buffer.concat([head, value])
  }
  const whole = prepend(head, chunks)
  if (head[0] !== 0x1f || head[1] !== 0x8b) return whole
  // An error of either stream ends the other and reaches the reader.
  return pipeline(Readable.from(whole), createGunzip(), () => {})
}

async function* prepend(head: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield head
  yield* rest
}

/** Cuts chunks into lines. */
class Splitter {
  readonly #file: string
  readonly #intake: LogIntake
  #pending: Buffer[] = []
  #pendingBytes = 0
  #skipping = false
  #isFirst = true
  /** Number of the current line, from 1. */
  #number = 1

  constructor(file: string, intake: LogIntake) {
    this.#file = file
    this.#intake = intake
  }

  split(chunk: Buffer): Line[] {
    if (this.#isFirst && chunk.includes(0)) throw new Unusable(`${this.#file} is not a log: it is not text.`)
    this.#isFirst = this.#isFirst && chunk.length === 0
    const lines: Line[] = []
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      this.#append(chunk.subarray(from, end))
      this.#finish(lines)
      from = end + 1
    }
    this.#append(chunk.subarray(from))
    return lines
  }

  end(): Line[] {
    const lines: Line[] = []
    if (this.#pendingBytes > 0 || this.#skipping) this.#finish(lines)
    return lines
  }

  #append(part: Buffer): void {
    if (this.#skipping || part.length === 0) return
    this.#pending.push(part)
    this.#pendingBytes += part.length
    if (this.#pendingBytes <= LONGEST_LINE) return
    this.#skipping = true
    const text = this.#pending[0]?.toString('utf8', 0, LONGEST_SHOWN) ?? ''
    this.#clear()
    const place = { file: this.#file, line: this.#number }
    this.#intake.trouble('broken', { ...place, reason: 'the line is longer than 1 MiB', text })
  }

  #finish(lines: Line[]): void {
    const [only, ...more] = this.#pending
    if (this.#skipping) lines.push(undefined)
    else if (only === undefined) lines.push('')
    else lines.push((more.length === 0 ? only : Buffer.concat(this.#pending)).toString())
    this.#skipping = false
    this.#number += 1
    this.#clear()
  }

  #clear(): void {
    this.#pending = []
    this.#pendingBytes = 0
  }
}
