/** The repository's address for package.json: npm's provenance compares it with what the build server reports. */
import { spawnSync } from 'node:child_process'
import { Failure, root } from './run.mjs'

/**
 * From the build server's environment (GitHub Actions, GitLab CI), else from the remote `origin`.
 * @param {NodeJS.ProcessEnv} env
 * @param {string} [remote] the address of `origin`; undefined where there is none
 * @returns {{ type: 'git', url: string }}
 */
export function repositoryOf(env, remote = originOf()) {
  const github =
    env.GITHUB_SERVER_URL && env.GITHUB_REPOSITORY && `${env.GITHUB_SERVER_URL}/${env.GITHUB_REPOSITORY}`
  const url = webAddress(github || env.CI_PROJECT_URL || remote)
  if (url !== undefined) return { type: 'git', url: `git+${url}.git` }
  throw new Failure(
    remote === undefined
      ? 'The repository is not known. Run this in GitHub Actions or GitLab CI, or: git remote add origin URL'
      : 'The remote "origin" is no address that npm could name. Run: git remote set-url origin https://HOST/OWNER/NAME.git',
  )
}

function originOf() {
  const { status, stdout } = spawnSync('git', ['remote', 'get-url', 'origin'], {
    cwd: root,
    encoding: 'utf8',
  })
  return status === 0 ? stdout.trim() : undefined
}

/** `git@host:owner/name.git`, `ssh://…` and `https://…` as https, without credentials; undefined for a path. */
function webAddress(address = '') {
  const scp = /^(?:[\w.-]+@)?([\w.-]+\.[\w-]+):(?!\/\/)\/?(.+)$/.exec(address)
  const text = scp ? `ssh://${scp[1]}/${scp[2]}` : address
  if (!/^(https?|ssh|git):\/\//.test(text) || !URL.canParse(text)) return undefined
  const { protocol, hostname, host, pathname } = new URL(text)
  const path = pathname.replace(/(?<!\/)\/+$/, '').replace(/\.git$/, '')
  // The SSH port is not the web server's.
  return path === '' ? undefined : `https://${/^https?:$/.test(protocol) ? host : hostname}${path}`
}
