/** The Nodes that package.json allows, each fetched once as the npm package `node`. */
import { mkdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { inProject, run } from './run.mjs'

/** The oldest Node that package.json allows, and the later lines. */
export const NODES = ['20.19', '22', '24', '26']

/**
 * Installs a Node under .cache, where npm finds nothing newer in its cache.
 *
 * @param {string} version
 * @returns an environment in which `node`, `npm` and `npx` run on it
 */
export function withNode(version) {
  const home = inProject('.cache', `node${version}`)
  mkdirSync(home, { recursive: true })
  const args = ['install', '--prefix', home, '--prefer-offline', '--silent', `node@${version}`]
  run('npm', args, `No Node ${version}`)
  return { ...process.env, PATH: `${join(home, 'node_modules', '.bin')}${delimiter}${process.env.PATH}` }
}
