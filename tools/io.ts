/** A command's access to the outside: data goes to stdout, messages to stderr (nothing else writes there). */
import { styleText } from 'node:util'
import { isColourful } from '../gateway/observe/terminal.js'
import { processTerminal, type Terminal } from './terminal.js'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

export interface Io {
  readonly stdin: NodeJS.ReadableStream
  readonly env: NodeJS.ProcessEnv
  /** The number of columns that lines should fit in. */
  readonly columns: number
  /** True when stderr is a terminal: progress may be shown there. */
  readonly watched: boolean
  /** Set when stdout and stdin are a terminal, which can send key presses. */
  readonly terminal?: Terminal
  /** Writes data. */
  out(text: string): void
  /** Writes a message. */
  err(text: string): void
  /** Emphasis on a terminal; elsewhere the text itself. */
  style(style: Style, text: string): string
}

/** Width of lines when it is not known otherwise. */
const USUAL_COLUMNS = 100
const FEWEST_COLUMNS = 20

/** The process's own streams. When the reader of a pipe has gone, as in `| head -1`, the process ends quietly. */
export function processIo(): Io {
  const { stdin, stdout, stderr, env } = process
  for (const stream of [stdout, stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
      process.exit()
    })
  }
  const colour = isColourful(stdout.isTTY === true, env)
  return {
    stdin,
    env,
    columns: Math.max(FEWEST_COLUMNS, stdout.columns || Number(env.COLUMNS) || USUAL_COLUMNS),
    watched: stderr.isTTY === true,
    ...(stdout.isTTY && stdin.isTTY && { terminal: processTerminal() }),
    out: text => void stdout.write(text),
    err: text => void stderr.write(text),
    style: (style, text) => (colour ? styleText(style, text) : text),
  }
}
