/** The tests, run again under other conditions. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Failure, inProject, root } from './run.mjs'

/**
 * Runs test files as `npm test` does, without the linter; fails with `sentence` unless they all pass.
 *
 * @param {readonly string[]} files
 * @param {NodeJS.ProcessEnv} env what is added to the environment
 * @param {string} sentence
 * @param {string} node the program that runs them
 */
export function runTests(files, env, sentence, node = process.execPath) {
  const { status } = spawnSync(node, [inProject('scripts', 'test.mjs'), '--no-lint', ...files], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (status !== 0) throw new Failure(sentence)
}

/**
 * The test files whose path and text are `wanted`, in order.
 *
 * @param {(path: string, text: string) => boolean} wanted
 */
export function testFiles(wanted) {
  return readdirSync(inProject('test'), { recursive: true, encoding: 'utf8' })
    .map(name => join('test', name))
    .filter(path => path.endsWith('.test.ts') && wanted(path, readFileSync(inProject(path), 'utf8')))
    .sort()
}
