import { closeSync, fdatasync, fdatasyncSync, openSync, readSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Disk } from './sqlite-group.js'

/** SQLite's write-ahead log as this process sees it. */
export interface WriteAheadLog extends Disk {
  /** Pages that wait to be moved into the database file. */
  waiting(): number
  /** To be called when the database is closed, not before: it would give up SQLite's locks. */
  close(): void
}

/** Where the index of the log says how many frames there are and how many are moved (https://sqlite.org/walformat.html, section 2.1). */
const frames = 16
const moved = 96
const headerBytes = 100

/** Of an open database in WAL mode. */
export function openLog(file: string): WriteAheadLog {
  const log = openSync(`${file}-wal`, 'r+')
  const index = openSync(`${file}-shm`, 'r')
  const flush = promisify(fdatasync)
  const header = new DataView(new ArrayBuffer(headerBytes))
  const isLittle = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1
  return {
    flush: () => flush(log),
    flushNow: () => fdatasyncSync(log),
    waiting() {
      readSync(index, header, 0, headerBytes, 0)
      return header.getUint32(frames, isLittle) - header.getUint32(moved, isLittle)
    },
    close() {
      closeSync(log)
      closeSync(index)
    },
  }
}
