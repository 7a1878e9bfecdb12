/** A terminal with a full-screen display and key input. */

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
export function processTerminal(): Terminal {
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
