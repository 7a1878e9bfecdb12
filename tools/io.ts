/** What a command sees of the world: data goes to stdout, messages to stderr (nothing else writes there). */
import { styleText } from 'node:util'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

/** A terminal that a command may take for itself. */
export interface Terminal {
  /** As it is now. */
  readonly size: { readonly columns: number; readonly rows: number }
  /** Hears of keys, as the terminal sends them, and of a new size, until the function that it gives is called. */
  take(hears: { key(sequence: string): void; resized(): void }): () => void
}

export interface Io {
  readonly stdin: NodeJS.ReadableStream
  readonly env: NodeJS.ProcessEnv
  /** Columns that lines should keep to. */
  readonly columns: number
  /** True when somebody watches stderr: progress may be shown there. */
  readonly watched: boolean
  /** Where somebody watches stdout and can press keys. */
  readonly terminal?: Terminal
  /** Writes data. */
  out(text: string): void
  /** Writes a message. */
  err(text: string): void
  /** Emphasis on a terminal; elsewhere the text itself. */
  style(style: Style, text: string): string
}

/** Where nothing says how wide lines may be. */
const USUAL_COLUMNS = 100
const FEWEST_COLUMNS = 20
const USUAL_ROWS = 24

/** The process's own streams. A reader that has gone, as in `| head -1`, ends the process quietly. */
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

/** A full screen of its own, which gives back the former one. */
function processTerminal(): Terminal {
  const { stdin, stdout } = process
  return {
    get size() {
      return { columns: stdout.columns || USUAL_COLUMNS, rows: stdout.rows || USUAL_ROWS }
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

/** The other screen, no cursor, no wrapping; and back. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l'
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l'
const ENDINGS = ['SIGTERM', 'SIGHUP', 'SIGINT'] as const

/** No colour off a terminal, on a dumb one, or where NO_COLOR is set to anything (no-color.org). */
export function isColourful(isTerminal: boolean, { NO_COLOR, TERM }: NodeJS.ProcessEnv): boolean {
  return isTerminal && !NO_COLOR && TERM !== 'dumb'
}
