/** The built gateway in a process of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure, inProject } from './run.mjs'

/** Enough even on a slow and busy machine. */
const PATIENCE_MS = 60_000

/** Whether a line of the log reports an error. */
export const isError = line => /^\{"level":"(error|fatal)"/.test(line)

/**
 * Starts `sluice serve`; it ends with this process. Throws a Failure with its last lines when it does not get ready.
 *
 * @param folder of its configuration, and of its data
 * @param settings `node`: options of Node's; `env`; `onLine`, which gets each line it writes
 * @returns the `child`, `ended` (its exit code and signal), and its addresses (`url`, `adminUrl`)
 */
export async function serve(folder, { node = [], env = {}, onLine = () => undefined } = {}) {
  const command = [inProject('dist', 'gateway', 'cli.js'), 'serve', '--config', folder]
  const child = spawn(process.execPath, [...node, ...command], {
    env: { PATH: process.env.PATH, DATA_DIR: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const kill = () => child.kill('SIGKILL')
  process.on('exit', kill)
  child.on('exit', () => process.off('exit', kill))
  const lines = []
  const ready = new Promise(resolve => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', line => {
        lines.push(line)
        lines.splice(0, lines.length - 20)
        const [, url, adminUrl] = /Sluice is ready on (\S+), admin on ([^\s"]+)/.exec(line) ?? []
        if (url) resolve({ url, adminUrl })
        onLine(line)
      })
    }
  })
  const ended = once(child, 'exit')
  const gone = ended.then(() => undefined)
  const addresses = await Promise.race([ready, gone, sleep(PATIENCE_MS, undefined, { ref: false })])
  if (!addresses) throw new Failure(`the gateway did not start:\n${lines.join('\n')}`)
  return { child, ended, ...addresses }
}
