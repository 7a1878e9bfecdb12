/** Schemathesis and scim2-tester, and which of their findings are expected. */
import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Every 4xx counts as a rejection: a body, an address or a number of fields can also be too large. Wrong keys are sent
 * by keys.mjs: a sender of many gets 429, which schemathesis takes for a fault.
 */
const checks = [
  'ignored_auth.enabled = false',
  'positive_data_acceptance.enabled = false',
  'negative_data_rejection.expected-statuses = ["4xx", "501"]',
].join('\n')

/**
 * Calls an API for `seconds` with what its OpenAPI document allows and forbids. Whether allowed data is accepted is not
 * checked: a schema cannot say that two fields belong together, or that a host must be public.
 *
 * @returns {Promise<{failed: boolean, told: string}>}
 */
export async function schemathesis(
  programs,
  folder,
  { name, document, seconds, key, paths, except, parameters = {} },
) {
  const place = join(folder, name)
  mkdirSync(place)
  const lines = Object.entries(parameters).map(([each, value]) => `"path.${each}" = ${JSON.stringify(value)}`)
  writeFileSync(
    join(place, 'schemathesis.toml'),
    `headers = { Authorization = ${JSON.stringify(key)} }\n[parameters]\n${lines.join('\n')}\n[checks]\n${checks}\n`,
  )
  const only = [
    ...(paths ? ['--include-path-regex', paths] : []),
    ...(except ? ['--exclude-path-regex', except] : []),
  ]
  const args = ['run', document, '--max-time', String(seconds), '--generation-database', 'none', '--no-color']
  const { code, output } = await call(
    join(programs, 'schemathesis'),
    [...args, '--warnings', 'off', ...only],
    {
      cwd: place,
    },
  )
  const summary = /(?<!\d)(\d+ generated.*)/.exec(output)?.[1] ?? 'no summary'
  return { failed: code !== 0, told: code === 0 ? summary : output }
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
export async function scim2Tester(programs, url, secret) {
  const env = { ...process.env, SCIM_CLI_HEADERS: `Authorization: Bearer ${secret}` }
  const { output } = await call(join(programs, 'scim2'), ['--url', url, 'test'], { env })
  const verdicts = output.split(/^(?=(?:[A-Z]{4,}) \w+$)/m)
  const bad = verdicts.filter(
    verdict => /^[A-Z]{4,} \w+\n/.test(verdict) && !/^(SUCCESS|SKIPPED) /.test(verdict),
  )
  const passed = verdicts.filter(verdict => verdict.startsWith('SUCCESS '))
  const unknown = bad.filter(verdict => !KNOWN.some(known => known.test(verdict)))
  const failed = unknown.length > 0 || passed.length < 100
  const summary = `${passed.length} passed, ${bad.length - unknown.length} known differences`
  return {
    failed,
    told: failed ? `${summary}\n${unknown.join('')}${passed.length < 100 ? output : ''}` : summary,
  }
}

function call(command, args, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', text => {
        output += text
      })
    }
    child.on('error', reject)
    child.on('close', code => resolve({ code, output }))
  })
}
