/** The Nodes that package.json allows, each fetched once as the npm package `node`. */
import { mkdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { inProject, run } from './run.mjs'

/** The oldest Node that package.json allows, and the later lines. */
export const NODES = ['20.19', '22', '24', '26']

/**
 * Fetches a Node, where npm's cache does not hold it.
 *
 * @param {string} version
 * @returns its program, and an environment in which `node`, `npm` and `npx` run on it
 */
export function withNode(version) {
  const home = inProject('.cache', `node${version}`)
  mkdirSync(home, { recursive: true })
  const args = ['install', '--prefix', home, '--prefer-offline', '--silent', `node@${version}`]
  run('npm', args, `No Node ${version}`)
  const programs = join(home, 'node_modules', '.bin')
  const env = { ...process.env, PATH: `${programs}${delimiter}${process.env.PATH}` }
  return { node: join(programs, 'node'), env }
}
