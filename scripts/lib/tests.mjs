/** The tests, run again under other conditions. */
import { spawnSync } from 'node:child_process'
import { Failure, inProject, root } from './run.mjs'

/**
 * Runs test files by `npm test`; fails with `sentence` unless they all pass.
 *
 * @param {readonly string[]} files
 * @param {NodeJS.ProcessEnv} env what is added to the environment
 * @param {string} sentence
 */
export function runTests(files, env, sentence) {
  const { status } = spawnSync(process.execPath, [inProject('scripts', 'test.mjs'), ...files], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (status !== 0) throw new Failure(sentence)
}
