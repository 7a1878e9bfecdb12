/** The directory service in a process of its own, for benchmarks that measure it from outside. */
import { inProject } from '../../lib/run.mjs'
import { PROXY_CORE, start } from '../processes.mjs'

/** Starts a program of peers/ that prints where it listens. */
export const startPeer = (file, env) =>
  start(PROXY_CORE, process.execPath, [inProject('scripts', 'bench', 'peers', file)], { tells: true, env })

/**
 * Starts the service with its data in a folder. It prints its port, its key, and path and secret of a first directory.
 */
export const startDirectory = (folder, env = {}) =>
  startPeer('sluice-directory.mjs', { DATA_DIR: folder, ...env })
