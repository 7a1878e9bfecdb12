/**
 * `npm test [-- --no-lint test/some/file.test.ts ...]`: lint, then the compiled tests under tap. Ends with the runner's
 * own counts of assertions, and with its exit code. A warning from Node is a failure: too many listeners indicate a leak.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { inProject, root } from './lib/run.mjs'
import { tapView } from './lib/tap-view.mjs'

const bin = (/** @type {string} */ program, /** @type {string[]} */ ...args) => [
  inProject('node_modules', program),
  ...args,
]
const args = process.argv.slice(2)
const files = args
  .filter(arg => arg !== '--no-lint')
  .map(file => file.replace(/^(?=test\/)/, 'dist/').replace(/\.ts$/, '.js'))

const lint = args.includes('--no-lint')
  ? { status: 0 }
  : spawnSync(process.execPath, bin('@biomejs/biome/bin/biome', 'check'), {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
    })

const TAP = 'tap/dist/esm/run.mjs'
// As installed it has plugins that .taprc switches off. Its first run would build it anew and load the old ones all the same.
if (
  readFileSync(inProject('node_modules/@tapjs/test/test-built/dist/esm/index.js'), 'utf8').includes(
    '@tapjs/typescript',
  )
)
  spawnSync(process.execPath, bin(TAP, 'build'), { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
const tap = spawn(process.execPath, bin(TAP, 'run', '--reporter=tap', ...files), {
  cwd: root,
  stdio: ['ignore', 'pipe', 'pipe'],
})
let warnings = 0
createInterface({ input: tap.stderr }).on('line', line => {
  // Tests may use features that Node calls experimental.
  if (/\(node:\d+\) (?:\[\w+\] )?(?!Experimental)\w*Warning/.test(line)) warnings += 1
  console.error(line)
})
const view = tapView(line => console.log(line))
for await (const line of createInterface({ input: tap.stdout })) view.read(line)
const code = tap.exitCode ?? (await once(tap, 'exit'))[0] ?? 1

if (lint.status !== 0) console.log('biome check found faults; see above')
if (warnings > 0) console.log(`Node warned ${warnings} times; see above`)
if (!view.counts) console.log(`tap ended with code ${code} and gave no counts`)
const { pass, fail, skip, todo } = view.counts ?? { pass: 0, fail: 0, skip: 0, todo: 0 }
console.log(`\n${pass} passed, ${fail} failed${skip + todo > 0 ? `, ${skip + todo} skipped` : ''}`)
process.exitCode = code || lint.status || (warnings > 0 ? 1 : 0)
