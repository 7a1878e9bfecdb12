import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The project's root folder, wherever the script was started from, and also for the copy of this file in dist/. */
export const root = folderAbove(dirname(fileURLToPath(import.meta.url)), 'package.json')

/** @returns {string} */
function folderAbove(/** @type {string} */ folder, /** @type {string} */ file) {
  return existsSync(join(folder, file)) ? folder : folderAbove(dirname(folder), file)
}

/** An absolute path inside the project. */
export const inProject = (/** @type {string[]} */ ...parts) => join(root, ...parts)

/** Prints a line of progress. On stderr, so that stdout belongs to the program being started. */
export const say = (/** @type {string} */ sentence) => console.error(`sluice: ${sentence}`)

/** Ends a script with a sentence instead of a stack trace. */
export class Failure extends Error {}

/**
 * Runs a script's work; a Failure becomes its sentence and exit code 1. A signal ends it through the exit handlers, which
 * stop every child process.
 *
 * @param {() => void | Promise<void>} work
 */
export async function script(work) {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
  try {
    await work()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    say(error.message)
    process.exitCode = 1
  }
}

/**
 * Runs a command to its end, its output on stderr; fails with `sentence` unless it exits with 0.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {string} sentence
 * @param {import('node:child_process').SpawnSyncOptions} options
 */
export function run(command, args, sentence, options = {}) {
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', process.stderr, process.stderr],
    ...options,
  })
  if (status !== 0) throw new Failure(`${sentence} (${error?.message ?? `exit code ${status}`})`)
}

/** Runs the command-line program of an installed package, without npx and its start-up time. */
export function runBin(
  /** @type {string} */ program,
  /** @type {string[]} */ args,
  /** @type {string} */ sentence,
) {
  run(process.execPath, [inProject('node_modules', program), ...args], sentence)
}

/** True when a program of that name is on PATH. */
export const onPath = (/** @type {string} */ name) =>
  (process.env.PATH ?? '').split(delimiter).some(folder => folder !== '' && existsSync(join(folder, name)))
