/** Runs a command of `sluice` in the test's own process. */
import { PassThrough } from 'node:stream'
import { Failure } from '../../gateway/errors.js'
import type { Io } from '../../tools/io.js'
import { run } from '../../tools/run.js'

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

export interface Surroundings {
  readonly columns?: number
  readonly env?: NodeJS.ProcessEnv
  /** The content of standard input. */
  readonly stdin?: string | Buffer
  /** Whether stderr is a terminal. */
  readonly watched?: boolean
}

/** What `sluice ARGS` prints, and its exit code. */
export async function sluice(args: readonly string[], surroundings: Surroundings = {}): Promise<Ran> {
  const { io, written } = recordingIo(surroundings)
  const code = await run(args, io).catch(error => {
    // As cli.ts does.
    if (!(error instanceof Failure)) throw error
    io.err(`${error.message}\n`)
    return 1
  })
  return { code: code ?? 0, ...written }
}

/** The surroundings of a command; `written` is what it has written so far. */
export function recordingIo(surroundings: Surroundings = {}): {
  readonly io: Io
  readonly written: { readonly out: string; readonly err: string }
} {
  const { columns = 100, env = {}, stdin = '', watched = false } = surroundings
  const written = { out: '', err: '' }
  const io: Io = {
    stdin: new PassThrough().end(stdin),
    env,
    columns,
    watched,
    out(text) {
      written.out += text
    },
    outAtOnce(text) {
      written.out += text
    },
    err(text) {
      written.err += text
    },
    style: (_style, text) => text,
  }
  return { io, written }
}
