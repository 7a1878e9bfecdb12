/** A progress bar on stderr, if it is a terminal. */
import type { Io } from './io.js'

export interface Progress {
  /** `done` of the total so far, in the total's unit. */
  at(done: number): void
  /** Erases the bar. */
  end(): void
}

const EVERY_MS = 100
const WIDEST_BAR = 40

/** @param total undefined when it is not known, as on standard input: then only what is done is shown, in MB */
export function progress(io: Io, total: number | undefined, now = () => performance.now()): Progress {
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
