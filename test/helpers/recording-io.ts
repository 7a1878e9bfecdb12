/** A terminal, or none, that remembers what a command wrote. */
import { Readable } from 'node:stream'
import type { Io } from '../../tools/io.js'
import { run } from '../../tools/run.js'

export interface Recording {
  readonly io: Io
  out(): string
  err(): string
}

export function recordingIo(changes: Partial<Io> = {}): Recording {
  let out = ''
  let err = ''
  return {
    io: {
      stdin: Readable.from([]),
      env: {},
      columns: 100,
      watched: false,
      out: text => {
        out += text
      },
      err: text => {
        err += text
      },
      style: (_style, text) => text,
      ...changes,
    },
    out: () => out,
    err: () => err,
  }
}

/** Runs `sluice` with these words in the test's own process. */
export async function runSluice(
  words: readonly string[],
  changes: Partial<Io> = {},
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const { io, out, err } = recordingIo(changes)
  const code = await run(words, io)
  return { code, out: out(), err: err() }
}
