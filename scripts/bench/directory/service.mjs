/** The directory service in a process of its own, for those who measure it from outside. */
import { inProject } from '../../lib/run.mjs'
import { PROXY_CORE, start } from '../processes.mjs'

/** Starts a program of this benchmark that tells where it listens. */
export const startPeer = (file, env) =>
  start(PROXY_CORE, process.execPath, [inProject('scripts', 'bench', 'peers', file)], { tells: true, env })

/** The service with its data in a folder. It tells its port, its management key, and path and secret of a first directory. */
export const startDirectory = (folder, env = {}) =>
  startPeer('sluice-directory.mjs', { DATA_DIR: folder, ...env })
