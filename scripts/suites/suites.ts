/** Schemathesis and scim2-tester, and which of their findings are expected. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { finish } from '../../test/helpers/launch.js'

/** An API, as its suite is asked to test it. */
export interface Asked {
  readonly name: string
  /** The address of its OpenAPI document. */
  readonly document: string
  readonly seconds: number
  /** The content of Authorization. */
  readonly key: string
  /** The paths to test, as regular expressions. */
  readonly paths?: string
  readonly except?: string
  /** Values of parameters in paths. */
  readonly parameters?: Readonly<Record<string, string>>
}

export interface Verdict {
  readonly failed: boolean
  readonly summary: string
}

/**
 * Every 4xx counts as a rejection: a body, an address or a number of fields can also be too large. Wrong keys are sent
 * by keys.ts: a sender of many gets 429, which schemathesis takes for a fault.
 */
const checks = [
  'ignored_auth.enabled = false',
  'positive_data_acceptance.enabled = false',
  'negative_data_rejection.expected-statuses = ["4xx", "501"]',
].join('\n')

/**
 * Deleting all links of a directory leaves an empty list, which schemathesis, by its path, takes for a deleted thing that can
 * still be read.
 */
const emptied = `[[operations]]
include-path-regex = "/setup-links$"
checks.use_after_free.enabled = false
`

/** More than the suites themselves allow. */
const SLACK_S = 600

/**
 * Calls an API for `seconds` with what its OpenAPI document allows and forbids. Whether allowed data is accepted is not
 * checked: a schema cannot say that two fields belong together, or that a host must be public.
 */
export async function schemathesis(programs: string, folder: string, asked: Asked): Promise<Verdict> {
  const { name, document, seconds, key, paths, except, parameters = {} } = asked
  const place = join(folder, name)
  mkdirSync(place)
  const lines = Object.entries(parameters).map(([each, value]) => `"path.${each}" = ${JSON.stringify(value)}`)
  writeFileSync(
    join(place, 'schemathesis.toml'),
    `headers = { Authorization = ${JSON.stringify(key)} }\n[parameters]\n${lines.join('\n')}\n[checks]\n${checks}\n${emptied}`,
  )
  const args = [
    ...['run', document, '--max-time', String(seconds), '--generation-database', 'none', '--no-color'],
    ...['--warnings', 'off'],
    ...(paths ? ['--include-path-regex', paths] : []),
    ...(except ? ['--exclude-path-regex', except] : []),
  ]
  const at = { cwd: place, seconds: seconds + SLACK_S }
  const { code, stdout, stderr } = await finish(join(programs, 'schemathesis'), args, at)
  if (code !== 0) return { failed: true, summary: stdout + stderr }
  return { failed: false, summary: /(?<!\d)(\d+ generated.*)/.exec(stdout + stderr)?.[1] ?? 'no summary' }
}

/**
 * Findings of scim2-tester that are intended behaviour. `active` cannot be removed, so that a disabled user stays out.
 * Members come with `display`, a read-only attribute of ours, while the suite expects exactly what it sent.
 */
const KNOWN = [
  /^ERROR check_remove_attribute\n {2}PATCH modify\(\) did not remove attribute 'active'/,
  /^ERROR check_(add|replace)_attribute\n {2}PATCH modify\(\) returned unexpected value for 'members'/,
]

/** Checks a directory's intake against RFC 7643 and 7644. */
export async function scim2Tester(programs: string, url: string, secret: string): Promise<Verdict> {
  const env = { SCIM_CLI_HEADERS: `Authorization: Bearer ${secret}` }
  const args = ['--url', url, 'test']
  const { stdout, stderr } = await finish(join(programs, 'scim2'), args, { env, seconds: SLACK_S })
  const verdicts = (stdout + stderr).split(/^(?=(?:[A-Z]{4,}) \w+$)/m)
  const bad = verdicts.filter(
    verdict => /^[A-Z]{4,} \w+\n/.test(verdict) && !/^(SUCCESS|SKIPPED) /.test(verdict),
  )
  const passed = verdicts.filter(verdict => verdict.startsWith('SUCCESS ')).length
  const unknown = bad.filter(verdict => !KNOWN.some(known => known.test(verdict)))
  const summary = `${passed} passed, ${bad.length - unknown.length} known differences`
  if (unknown.length === 0 && passed >= 100) return { failed: false, summary }
  return { failed: true, summary: `${summary}\n${unknown.join('')}${passed < 100 ? stdout + stderr : ''}` }
}
