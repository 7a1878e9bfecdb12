/**
 * `npm run release [-- --dry-run]`: publishes the version that CHANGELOG.md names, and tags it. Needs NPM_TOKEN, and an OIDC
 * identity of the build server for the provenance. A dry run leaves out the whole check, publishing and the tag.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { build } from './lib/build.mjs'
import { checkArchive, withArchive } from './lib/package.mjs'
import { Failure, inProject, root, run, say, script } from './lib/run.mjs'

const { values } = parseArgs({ options: { 'dry-run': { type: 'boolean', default: false } } })
const isDry = values['dry-run']

await script(async () => {
  const version = releasable()
  if (!isDry) {
    mayPublish()
    run('.ci/run', [], 'The check failed; see above')
  }
  build()
  await withArchive(archive => {
    checkArchive(archive)
    publish(archive)
  })
  if (isDry) return say(`${version} is ready. Nothing was published or tagged.`)
  run('git', ['tag', '--annotate', `v${version}`, '--message', version], 'git could not tag')
  say(`${version} is published. Push its tag: git push origin v${version}`)
})

/** The version to release. Throws a Failure when the tree or its papers are not in order. */
function releasable() {
  if (output('git', ['status', '--porcelain']) !== '') {
    throw new Failure('The working tree has changes. Commit or remove them first')
  }
  const changelog = readFileSync(inProject('CHANGELOG.md'), 'utf8')
  const version = /^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$/m.exec(changelog)?.[1]
  if (version === undefined)
    throw new Failure('CHANGELOG.md names no version: write "## [1.2.3] - 2026-01-31"')
  const unreleased = /^## \[Unreleased\]\n(.*?)^## \[/ms.exec(changelog)?.[1] ?? ''
  if (unreleased.trim() !== '') {
    throw new Failure(`CHANGELOG.md has unreleased changes above ${version}. Give them a version`)
  }
  const manifest = JSON.parse(readFileSync(inProject('package.json'), 'utf8'))
  if (manifest.version !== version) {
    throw new Failure(
      `package.json says ${manifest.version}, CHANGELOG.md ${version}. Run: npm version --no-git-tag-version ${version}`,
    )
  }
  if (output('git', ['tag', '--list', `v${version}`]) !== '')
    throw new Failure(`v${version} is tagged already`)
  if (!isDry && manifest.repository === undefined) {
    throw new Failure('package.json names no repository, which a provenance statement must')
  }
  return version
}

function mayPublish() {
  if (!process.env.NPM_TOKEN) throw new Failure('Set NPM_TOKEN to a token that may publish the package')
  const identities = ['ACTIONS_ID_TOKEN_REQUEST_URL', 'SIGSTORE_ID_TOKEN']
  if (!identities.some(name => process.env[name])) {
    throw new Failure(
      'Provenance needs an OIDC identity: release from the build server, with id-token: write',
    )
  }
}

function publish(archive) {
  const registry = new URL(output('npm', ['config', 'get', 'registry']))
  // By the environment: what stands on a command line can be read by other users.
  const token = { [`npm_config_//${registry.host}${registry.pathname}:_authToken`]: process.env.NPM_TOKEN }
  run(
    'npm',
    ['publish', archive, '--access', 'public', ...(isDry ? ['--dry-run'] : ['--provenance'])],
    'npm could not publish',
    { env: { ...process.env, ...(isDry ? {} : token) } },
  )
}

function output(command, args) {
  const { status, stdout } = spawnSync(command, args, { cwd: root, encoding: 'utf8' })
  if (status !== 0) throw new Failure(`${command} ${args.join(' ')} failed`)
  return stdout.trim()
}
