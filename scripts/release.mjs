/**
 * `npm run release [-- --dry-run]`: publishes the version of package.json, and tags it unless `npm version` has. Needs
 * NPM_TOKEN, and an OIDC identity of the build server for the provenance. A dry run reports what is missing, and skips
 * the full check, publishing and the tag.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { build } from './lib/build.mjs'
import { changelogFault } from './lib/changelog.mjs'
import { checkArchive, withArchive } from './lib/package.mjs'
import { repositoryOf } from './lib/repository.mjs'
import { Failure, inProject, root, run, say, script } from './lib/run.mjs'

const { values } = parseArgs({ options: { 'dry-run': { type: 'boolean', default: false } } })
const isDry = values['dry-run']

await script(() => {
  const manifest = JSON.parse(readFileSync(inProject('package.json'), 'utf8'))
  const { version } = manifest
  const missing = [...treeFaults(version), ...publishFaults()]
  const repository = manifest.repository ?? repositoryIn(missing)
  if (missing.length > 0 && !isDry) throw new Failure(missing.join('.\nsluice: '))
  for (const sentence of missing) say(`missing: ${sentence}.`)
  if (!isDry) run('.ci/run', [], 'The check failed; see above')
  build()
  withArchive(archive => {
    checkArchive(archive)
    publish(archive)
  }, repository && { repository })
  if (repository) say(`the package names its repository: ${repository.url ?? repository}`)
  if (isDry) {
    const still = missing.length === 0 ? '' : ' A release needs what is missing above.'
    return say(`the package of ${version} is in order.${still} Nothing was published or tagged.`)
  }
  if (tagged(version) === '') {
    run('git', ['tag', '--annotate', `v${version}`, '--message', version], 'git could not tag')
  }
  say(`${version} is published. Push its tag, if it is not there yet: git push origin v${version}`)
})

/** What is wrong with the tree, its changelog and its tag, as sentences. */
function treeFaults(/** @type {string} */ version) {
  const faults = []
  if (output('git', ['status', '--porcelain']) !== '') {
    faults.push('The working tree has changes. Commit or remove them first')
  }
  const changelog = changelogFault(readFileSync(inProject('CHANGELOG.md'), 'utf8'), version)
  if (changelog !== undefined) faults.push(changelog)
  if (!['', output('git', ['rev-parse', 'HEAD'])].includes(tagged(version))) {
    faults.push(`v${version} is the tag of another commit. Choose the next version: npm version patch`)
  }
  return faults
}

function publishFaults() {
  const faults = []
  if (!process.env.NPM_TOKEN)
    faults.push('NPM_TOKEN is not set. It must be a token that may publish the package')
  const identities = ['ACTIONS_ID_TOKEN_REQUEST_URL', 'SIGSTORE_ID_TOKEN']
  if (!identities.some(name => process.env[name])) {
    faults.push(
      'There is no OIDC identity for the provenance. Release from a job of GitHub Actions with "id-token: write", or of GitLab CI with SIGSTORE_ID_TOKEN',
    )
  }
  return faults
}

/** The repository's address; adds to `missing` why it is not known. */
function repositoryIn(/** @type {string[]} */ missing) {
  try {
    return repositoryOf(process.env)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    missing.push(error.message)
    return undefined
  }
}

/** The commit that has the version's tag, or ''. */
function tagged(/** @type {string} */ version) {
  const format = '%(*objectname)%(objectname)'
  return output('git', ['tag', '--list', `v${version}`, '--format', format]).slice(0, 40)
}

function publish(/** @type {string} */ archive) {
  const registry = new URL(output('npm', ['config', 'get', 'registry']))
  // In the environment, because other users can read command lines.
  const token = { [`npm_config_//${registry.host}${registry.pathname}:_authToken`]: process.env.NPM_TOKEN }
  run(
    'npm',
    ['publish', archive, '--access', 'public', ...(isDry ? ['--dry-run'] : ['--provenance'])],
    'npm could not publish',
    { env: { ...process.env, ...(isDry ? {} : token) } },
  )
}

function output(/** @type {string} */ command, /** @type {string[]} */ args) {
  const { status, stdout } = spawnSync(command, args, { cwd: root, encoding: 'utf8' })
  if (status !== 0) throw new Failure(`${command} ${args.join(' ')} failed`)
  return stdout.trim()
}
