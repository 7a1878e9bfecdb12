/** CHANGELOG.md, in the form of Keep a Changelog: what is unreleased, and what each version brought. */
import { Failure } from './run.mjs'

const UNRELEASED = '## [Unreleased]\n'

/**
 * Moves the unreleased entries under a version and a day (`2026-01-31`). Returns the text as is if it has that version.
 */
export function withVersion(
  /** @type {string} */ text,
  /** @type {string} */ version,
  /** @type {string} */ day,
) {
  if (hasVersion(text, version)) return text
  if (unreleased(text) === '') {
    throw new Failure(`CHANGELOG.md has nothing under "${UNRELEASED.trim()}". Write there what is new first`)
  }
  return text.replace(UNRELEASED, `${UNRELEASED}\n## [${version}] - ${day}\n`)
}

/** Why the version cannot be released, as a sentence without its full stop; undefined when it can. */
export function changelogFault(/** @type {string} */ text, /** @type {string} */ version) {
  if (!hasVersion(text, version)) {
    return `CHANGELOG.md has no heading for ${version}. Run: npm version --allow-same-version ${version}`
  }
  return unreleased(text) === ''
    ? undefined
    : `CHANGELOG.md has unreleased changes above ${version}. Give them a version: npm version minor`
}

const hasVersion = (/** @type {string} */ text, /** @type {string} */ version) =>
  [...text.matchAll(/^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$/gm)].some(([, found]) => found === version)

function unreleased(/** @type {string} */ text) {
  const [, after = ''] = text.split(UNRELEASED)
  return after
    .split(/^## \[/m, 1)
    .join()
    .trim()
}
