/**
 * `npm run test:dates`: runs the tests that depend on the calendar again on days that are known to go wrong, by libfaketime.
 * Gateways, services and Redis started by the tests live at that moment, too.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Failure, say, script } from './lib/run.mjs'
import { installStores } from './lib/stores.mjs'
import { runTests, testFiles } from './lib/tests.mjs'

/** The clocks of Berlin change at 01:00 UTC; those of autumn are in test/gateway/decide/calendar-clocks.test.ts. */
const BERLIN = 'Europe/Berlin'
/** Walked on the leap day alone, because it takes as long as all others together. */
const TOOLS = { file: 'test/docs/tools.test.ts', at: '2028-02-29T12:00:00Z' }
const MOMENTS = [
  { at: TOOLS.at },
  { at: '2027-01-31T23:59:30Z' },
  { at: '2027-03-28T00:59:30Z', zone: BERLIN },
]

/** Clocks that change in a time zone concern only its periods: other dates are in UTC. */
const PERIODS = /\bper: (?:day|week|month)\b/
/** What a test that depends on the calendar names: its periods, entries that end, the pages that are full of dates. */
const DEPENDS =
  /\buntil: ["']?\d{4}-|"until"|\bper: (?:day|week|month)\b|\bmovedDay\b|'docs\/(?:operators|rollout)\.md'/
const CALENDAR = /calendar/
/** Chromium keeps its own time, and does not start under libfaketime. */
const BROWSER = /helpers\/browser\.js/

await script(() => {
  const library = findLibrary()
  /** @param {RegExp} dates what their texts name */
  const filesWith = dates =>
    testFiles((path, text) => (CALENDAR.test(path) || dates.test(text)) && !BROWSER.test(text))
  // Debian's Redis does not run under libfaketime, because of its allocator.
  const server = installStores().find(({ name }) => name === 'Valkey 9.1')?.server
  for (const { at, zone = 'UTC' } of MOMENTS) {
    const dependent = filesWith(zone === BERLIN ? PERIODS : DEPENDS)
    const files = at === TOOLS.at ? [TOOLS.file, ...dependent] : dependent
    say(`${files.length} test files at ${at}, in ${zone}`)
    const seconds = Math.round((Date.parse(at) - Date.now()) / 1000)
    const env = {
      ...{ LD_PRELOAD: library, FAKETIME: `+${seconds}`, FAKETIME_DONT_FAKE_MONOTONIC: '1', TZ: zone },
      ...{ REDIS_SERVER: server, REDIS_URL: '' },
    }
    runTests(files, env, `tests fail at ${at}, in ${zone}; see above`)
  }
})

function findLibrary() {
  const folders = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64', '/usr/lib']
  const library = folders.map(folder => join(folder, 'faketime', 'libfaketime.so.1')).find(existsSync)
  if (library === undefined) throw new Failure('libfaketime is missing: apt-get install libfaketime')
  return library
}
