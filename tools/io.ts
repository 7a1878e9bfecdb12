/**
 * A command's access to the outside: data goes to stdout, messages to stderr (nothing else writes there), and a command
 * may take over a terminal.
 */
import { writeSync } from 'node:fs'
import { styleText } from 'node:util'
import { Failure } from '../gateway/errors.js'
import { isColourful } from '../gateway/observe/terminal.js'

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
  /** Writes data, and does not return before it is written. @throws {Failure} if it cannot be */
  outAtOnce(text: string): void
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
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit()
    stderr.write(`${unwritable(error)}\n`, () => process.exit(1))
  })
  stderr.on('error', () => process.exit(1))
  const colour = isColourful(stdout.isTTY === true, env)
  return {
    stdin,
    env,
    columns: Math.max(FEWEST_COLUMNS, stdout.columns || Number(env.COLUMNS) || USUAL_COLUMNS),
    watched: stderr.isTTY === true,
    ...(stdout.isTTY && stdin.isTTY && { terminal: processTerminal() }),
    out: text => void stdout.write(text),
    outAtOnce: text => writeAtOnce(stdout.fd, text),
    err: text => void stderr.write(text),
    style: (style, text) => (colour ? styleText(style, text) : text),
  }
}

const unwritable = ({ code, message }: NodeJS.ErrnoException): string =>
  `The output cannot be written (${code ?? message}).`

function writeAtOnce(to: number, text: string): void {
  let rest = Buffer.from(text)
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(to, rest))
    } catch (error) {
      // The reader of a pipe is slower.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw new Failure(unwritable(error as Error))
    }
  }
}

/** A terminal that a command may take over. */
export interface Terminal {
  /** The current size. */
  readonly size: { readonly columns: number; readonly rows: number }
  /**
   * Takes over the terminal. Reports key sequences, as the terminal sends them, and changes of size, until the returned
   * function is called.
   */
  take(listens: { key(sequence: string): void; resized(): void }): () => void
}

const USUAL = { columns: 80, rows: 24 } as const

/** The process's terminal. Uses the alternate screen, and restores the former one afterwards. */
function processTerminal(): Terminal {
  const { stdin, stdout } = process
  return {
    get size() {
      return { columns: stdout.columns || USUAL.columns, rows: stdout.rows || USUAL.rows }
    },
    take({ key, resized }) {
      const leave = () => {
        stdin.setRawMode(false)
        stdout.write(LEAVE)
      }
      const end = () => process.exit(1)
      const onData = (data: Buffer) => key(data.toString('latin1'))
      stdout.write(ENTER)
      stdin.setRawMode(true)
      stdin.on('data', onData)
      stdout.on('resize', resized)
      process.once('exit', leave)
      for (const signal of ENDINGS) process.once(signal, end)
      return () => {
        stdin.off('data', onData).pause()
        stdout.off('resize', resized)
        process.off('exit', leave)
        for (const signal of ENDINGS) process.off(signal, end)
        leave()
      }
    },
  }
}

/** Alternate screen, no cursor, no wrapping; and back. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l'
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l'
const ENDINGS = ['SIGTERM', 'SIGHUP', 'SIGINT'] as const
