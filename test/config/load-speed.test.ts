/** How long loading takes as files grow: in proportion to their size, not to its square. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { load } from '../../gateway/configured/load.js'
import { quiet } from '../../tools/config.js'

/** When files grow tenfold, loading may take this many times as long; quadratic growth would be a hundred times. */
const MOST_TIMES = 20
const FILES = 2

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i)

/** Buckets in two files and two rows, and a project per twenty buckets that negotiated ten of them. */
function written(folder: string, buckets: number): string {
  const write = (name: string, lines: readonly string[]) =>
    writeFileSync(join(folder, name), `${lines.join('\n')}\n`)
  mkdirSync(join(folder, 'policies'), { recursive: true })
  write('gateway.yaml', [
    'version: 1',
    'upstreams: { a: { embedded: identity } }',
    'routes: [{ path: /**, upstream: a }]',
  ])
  const overrides = (i: number) => numbers(10).map(j => `b${i * 10 + j}: { burst: 50 }`)
  const projects = numbers(buckets / 20).map(
    i =>
      `  - { id: p${i}, plan: growth, environment: production, overrides: { ${overrides(i).join(', ')} } }`,
  )
  write('projects.yaml', ['version: 1', 'projects:', ...projects])
  for (const file of numbers(FILES)) {
    const own = numbers(buckets / FILES).map(i => file * (buckets / FILES) + i)
    const quotas = (burst: number) => own.map(i => `      b${i}: { burst: ${burst}, sustained: 100 }`)
    write(`policies/${file}.yaml`, [
      'version: 1',
      'kind: project-limits',
      'buckets:',
      ...own.map(i => `  b${i}: [GET /r${i}/items]`),
      'limits:',
      '  - for: [{ environments: [development, staging] }, { plans: [developer] }]',
      '    quotas:',
      ...quotas(1),
      '  - for: [{ environments: [production], plans: [production, essential, growth, scale, enterprise] }]',
      '    quotas:',
      ...quotas(10),
    ])
  }
  return folder
}

/** CPU seconds; the lesser of two runs, because the first one also compiles the code. */
async function secondsFor(folder: string): Promise<number> {
  const seconds: number[] = []
  for (let i = 0; i < 2; i++) {
    const before = process.cpuUsage()
    const loaded = await load(folder, {}, quiet)
    const { user, system } = process.cpuUsage(before)
    if ('problems' in loaded) throw new Error(loaded.problems[0]?.message)
    seconds.push((user + system) / 1e6)
  }
  return Math.min(...seconds)
}

t.test('loading time grows in proportion to the number of buckets and overrides', async t => {
  const dir = t.testdir()
  const few = await secondsFor(written(join(dir, 'few'), 1000))
  const many = await secondsFor(written(join(dir, 'many'), 10_000))
  t.comment(`${few.toFixed(3)} s, ${many.toFixed(3)} s`)
  t.ok(many < few * MOST_TIMES, `${few} s for 1,000 buckets, ${many} s for 10,000`)
})

t.test('ten thousand misspelt names are reported in bounded time', async t => {
  const folder = written(t.testdir(), 1000)
  const names = numbers(10_000).map(i => `      bucket${i}x: { burst: 1, sustained: 1 }`)
  writeFileSync(
    join(folder, 'policies', 'wrong.yaml'),
    `version: 1\nkind: project-limits\nmode: report-only\nbuckets: {}\nlimits:\n  - for: [{}]\n    quotas:\n${names.join('\n')}\n`,
  )
  const before = process.cpuUsage()
  const loaded = await load(folder, {}, quiet)
  const { user } = process.cpuUsage(before)
  t.equal('problems' in loaded && loaded.problems.length, 10_000)
  t.ok(user < 15e6, `${user / 1e6} s of CPU`)
})
