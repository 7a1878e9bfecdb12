/** What a release has to find out: the repository's address, and what CHANGELOG.md says about the version. */
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { inProject } from '../helpers/root.js'

const script = (name: string) => import(pathToFileURL(inProject('scripts', 'lib', name)).href)

t.test('the repository address comes from the build server, or else from the remote "origin"', async t => {
  const { repositoryOf } = await script('repository.mjs')
  const url = (env: object, remote?: string) => repositoryOf(env, remote).url
  const github = { GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: 'acme/sluice' }
  t.equal(url(github, 'git@example.com:other/name.git'), 'git+https://github.com/acme/sluice.git')
  t.equal(url({ CI_PROJECT_URL: 'https://gitlab.com/a/b/c' }, '/srv/x'), 'git+https://gitlab.com/a/b/c.git')
  for (const remote of [
    'git@github.com:acme/sluice.git',
    'ssh://git@github.com:22/acme/sluice.git',
    'https://user:canary@github.com/acme/sluice.git',
    'https://github.com/acme/sluice/',
  ]) {
    t.equal(url({}, remote), 'git+https://github.com/acme/sluice.git', remote)
  }
  for (const remote of [
    '/srv/sluice.git',
    '../sluice',
    'file:///srv/sluice',
    'C:\\sluice',
    'https://github.com/',
    '',
  ]) {
    t.throws(() => repositoryOf({}, remote), /git remote set-url origin https:/, remote)
  }
})

const CHANGELOG = '# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A.\n'

t.test('a release puts the unreleased changes below a heading with the version and the day', async t => {
  const { withVersion, changelogFault } = await script('changelog.mjs')
  t.match(changelogFault(CHANGELOG, '0.1.0'), 'Run: npm version --allow-same-version 0.1.0')
  const released = withVersion(CHANGELOG, '0.1.0', '2026-01-31')
  t.equal(released, '# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-31\n\n### Added\n\n- A.\n')
  t.equal(changelogFault(released, '0.1.0'), undefined)
  t.equal(
    withVersion(released, '0.1.0', '2026-02-01'),
    released,
    'a version that is already there is not added again',
  )
  t.throws(() => withVersion(released, '0.2.0', '2026-02-01'), /Write there what is new first/)
  const next = released.replace('[Unreleased]\n', '[Unreleased]\n\n- B.\n')
  t.match(changelogFault(next, '0.1.0'), 'has unreleased changes above 0.1.0')
})
