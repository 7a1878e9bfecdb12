/** A terminal that shows a screen which changes, and hears keys. */

/** A terminal that a command may take for itself. */
export interface Terminal {
  /** As it is now. */
  readonly size: { readonly columns: number; readonly rows: number }
  /** Hears of keys, as the terminal sends them, and of a new size, until the function that it gives is called. */
  take(hears: { key(sequence: string): void; resized(): void }): () => void
}

const USUAL = { columns: 80, rows: 24 } as const

/** A full screen of its own, which gives back the former one. */
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

/** The other screen, no cursor, no wrapping; and back. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l'
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l'
const ENDINGS = ['SIGTERM', 'SIGHUP', 'SIGINT'] as const
