import { pathToFileURL } from 'node:url'
import t from 'tap'
import { inProject } from '../helpers/root.js'

interface View {
  readonly counts: Record<'total' | 'pass' | 'fail' | 'skip' | 'todo', number> | undefined
  read(line: string): void
}

/** What `npm test` shows of tap's output, and the final counts. */
async function show(tap: string): Promise<{ shown: string[]; counts: View['counts'] }> {
  const { tapView } = await import(pathToFileURL(inProject('scripts', 'lib', 'tap-view.mjs')).href)
  const shown: string[] = []
  const view: View = tapView((line: string) => shown.push(line))
  for (const line of tap.split('\n')) view.read(line)
  return { shown, counts: view.counts }
}

const RUN = `TAP version 14
1..2
# Subtest: dist/test/good.test.js
    # Subtest: adds
        ok 1 - one and one
        ok 2 - redis-server is missing # SKIP
    ok 1 - adds # time=2.7ms
    1..1
ok 1 - dist/test/good.test.js # time=21.63ms

# Subtest: dist/test/bad.test.js
    # Subtest: outer
        ok 1 - fine
        not ok 2 - wrong
          ---
          diff: |
            -  "a": 2,
          ...
        ok 3 - fine again
    not ok 1 - outer # time=53.443ms
      ---
      at: repeated
      ...
not ok 2 - dist/test/bad.test.js # time=111.529ms
  ---
  exitCode: 1
  ...

# { total: 6, pass: 4, fail: 1, skip: 1 }
# time=5144.905ms`

t.test('npm test shows one line per file, and failures and skips in full', async t => {
  const { shown } = await show(RUN)
  t.same(shown, [
    'ok     dist/test/good.test.js (22 ms)',
    '        ok 2 - redis-server is missing # SKIP',
    'FAILED dist/test/bad.test.js (112 ms)',
    '        not ok 2 - wrong',
    '          ---',
    '          diff: |',
    '            -  "a": 2,',
    '          ...',
    '    not ok 1 - outer # time=53.443ms',
  ])
})

t.test("npm test takes its counts from the runner's summary, and has none without it", async t => {
  t.same((await show(RUN)).counts, { total: 6, pass: 4, fail: 1, skip: 1, todo: 0 })
  t.equal((await show(RUN.slice(0, 200))).counts, undefined)
})
