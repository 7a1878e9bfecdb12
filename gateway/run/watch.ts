/** Notices that the configuration's files have changed, however they were written. */
import { type FSWatcher, watch } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasChanged, markOf, type Sources } from '../../config/marks.js'
import type { Log } from '../types.js'

/** File watches miss changes: network file systems, links into other folders, folders created later. */
const POLL_MS = 2000
/** Files that stay unchanged for this long are assumed to be completely written. */
const SETTLE_MS = 100
/** Files that never settle are read all the same; the next look finds later changes. */
const MOST_SETTLING = 20

export interface WatchOptions {
  /** The files read last, with their marks. */
  sources(): Sources
  /** Resolves when no other reload is reading them. */
  idle(): Promise<unknown>
  /** Reads the files again and updates `sources`. */
  changed(): Promise<unknown>
  readonly log: Log
  readonly pollMs?: number
}

export interface Watch {
  close(): void
}

/**
 * Looks for changes after every event in the watched folders, and every two seconds. An event only says when to look;
 * the files themselves show whether something changed. So writes in place, renames over a file and the swapped links of
 * a Kubernetes volume are all found alike, and no change is read twice.
 */
export function watchSources({ sources, idle, changed, log, pollMs = POLL_MS }: WatchOptions): Watch {
  let watchers: FSWatcher[] = []
  let isClosed = false
  let isLooking = false

  const look = async (): Promise<void> => {
    if (isLooking || isClosed) return
    isLooking = true
    try {
      while (!isClosed && hasChanged(sources())) {
        await settled(sources())
        // A reload may have been requested meanwhile: one is enough for one change.
        await idle()
        if (isClosed) return
        if (hasChanged(sources())) await changed()
        arm()
      }
    } catch (error) {
      log.error({ err: error }, 'the configuration could not be watched')
    } finally {
      isLooking = false
    }
  }

  /** A folder that was replaced needs a new watch, and a new configuration may name other folders. */
  const arm = (): void => {
    disarm()
    watchers = [...foldersOf(sources())].flatMap(folder => watchFolder(folder, look))
  }
  const disarm = (): void => {
    for (const watcher of watchers) watcher.close()
  }

  arm()
  const poll = setInterval(look, pollMs).unref()
  look()
  return {
    close() {
      isClosed = true
      clearInterval(poll)
      disarm()
    },
  }
}

async function settled(sources: Sources): Promise<void> {
  const look = () => [...sources.keys()].map(markOf).join('\n')
  let before = look()
  for (let i = 0; i < MOST_SETTLING; i++) {
    await sleep(SETTLE_MS)
    const now = look()
    if (now === before) return
    before = now
  }
}

/** Each source that is a folder, and the folder of each source, where its name may be given to another file. */
function foldersOf(sources: Sources): Set<string> {
  return new Set([...sources.keys()].flatMap(path => [path, dirname(path)]))
}

function watchFolder(folder: string, onEvent: () => void): FSWatcher[] {
  try {
    // Polling makes up for a watch that fails.
    return [watch(folder, { persistent: false }, onEvent).on('error', () => {})]
  } catch {
    return []
  }
}
