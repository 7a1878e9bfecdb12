/** How long `sluice check` and `sluice diff` take as policies grow: in proportion to their size, not to its square. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Configuration, load } from '../../gateway/configured/load.js'
import { compare } from '../../gateway/explain/difference/compare.js'
import { quiet } from '../../tools/config.js'
import { lint } from '../../tools/lint/lint.js'

/** When policies grow fourfold, the work may take this many times as long; quadratic growth would be sixteen times. */
const MOST_TIMES = 8

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i)

interface Files {
  readonly policy: readonly string[]
  readonly projects?: readonly string[]
}

async function loaded(
  folder: string,
  { policy, projects = ['{ id: p0, plan: growth, environment: production }'] }: Files,
) {
  const write = (name: string, lines: readonly string[]) =>
    writeFileSync(join(folder, name), `${['version: 1', ...lines].join('\n')}\n`)
  mkdirSync(join(folder, 'policies'), { recursive: true })
  write('gateway.yaml', ['upstreams: { a: { embedded: identity } }', 'routes: [{ path: /**, upstream: a }]'])
  write('projects.yaml', ['projects:', ...projects.map(project => `  - ${project}`)])
  write('policies/policy.yaml', policy)
  const found = await load(folder, {}, quiet)
  if ('problems' in found) throw new Error(found.problems[0]?.message)
  return found
}

/** CPU seconds; the lesser of two runs, because the first one also compiles the code. */
function secondsFor(work: () => void): number {
  const seconds = numbers(2).map(() => {
    const before = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1e6
  })
  return Math.min(...seconds)
}

const check = (found: Configuration) => () => {
  lint(found, { now: 0, reportOnlyDays: 30 })
}

const rules = (count: number, kind: string, limit: string): Files => ({
  policy: [
    `kind: ${kind}`,
    'rules:',
    ...numbers(count).map(
      i => `  - { id: v${i}, match: [POST /v/${i}], key: [client-ip], ${limit}, mode: enforce }`,
    ),
  ],
})

const access = (count: number): Files => {
  const networks = (from: number) => numbers(count).map(i => `10.${from + (i >> 8)}.${i & 255}.0/24`)
  return {
    policy: [
      'kind: access',
      'rules:',
      `  - { id: deny, networks: [${networks(100)}], action: deny, mode: enforce }`,
      `  - { id: exempt, networks: [${networks(0)}], action: exempt, mode: enforce }`,
    ],
  }
}

const buckets = (count: number, prefix = 'b'): Files => ({
  policy: [
    'kind: project-limits',
    'mode: enforce',
    'buckets:',
    ...numbers(count).map(i => `  ${prefix}${i}: [GET /r${i}]`),
    'limits:',
    '  - for: [{}]',
    '    quotas:',
    ...numbers(count).map(i => `      ${prefix}${i}: { burst: 10, sustained: 100 }`),
  ],
})

const overridden = (count: number, burst: number, bucketCount = 100): Files => ({
  ...buckets(bucketCount),
  projects: numbers(count).map(
    i =>
      `{ id: p${i}, plan: growth, environment: production, overrides: { b${i % bucketCount}: { burst: ${burst} } } }`,
  ),
})

const CHECKED: Readonly<Record<string, (count: number) => Files>> = {
  'volumetric rules': count => rules(count, 'volumetric', 'quota: { requests: 5, per: 60s }'),
  'in-flight rules': count => rules(count, 'in-flight', 'max: 5'),
  'denied and exempt networks': access,
  buckets,
  'projects with overrides': count => overridden(count, 50),
}

for (const [what, files] of Object.entries(CHECKED)) {
  t.test(`checking takes time in proportion to the number of ${what}`, async t => {
    const dir = t.testdir()
    const few = secondsFor(check(await loaded(join(dir, 'few'), files(1000))))
    const many = secondsFor(check(await loaded(join(dir, 'many'), files(4000))))
    t.ok(many < Math.max(few, 0.05) * MOST_TIMES, `${few} s for 1,000, ${many} s for 4,000`)
  })
}

t.test('comparing takes time in proportion to the number of buckets that are renamed', async t => {
  const dir = t.testdir()
  const secondsTo = async (count: number) => {
    const old = await loaded(join(dir, `old${count}`), buckets(count))
    const now = await loaded(join(dir, `now${count}`), buckets(count, 'c'))
    return secondsFor(() => compare(old, now))
  }
  const [few, many] = [await secondsTo(1000), await secondsTo(4000)]
  t.ok(many < Math.max(few, 0.05) * MOST_TIMES, `${few} s for 1,000, ${many} s for 4,000`)
})

t.test('comparing projects whose overrides differ costs no more where there are more buckets', async t => {
  const dir = t.testdir()
  const secondsWith = async (bucketCount: number) => {
    const files = (burst: number) => overridden(1000, burst, bucketCount)
    const old = await loaded(join(dir, `old${bucketCount}`), files(50))
    const now = await loaded(join(dir, `now${bucketCount}`), files(60))
    return secondsFor(() => t.equal(compare(old, now).projects.length, 1000))
  }
  const [few, many] = [await secondsWith(20), await secondsWith(320)]
  t.ok(many < Math.max(few, 0.05) * MOST_TIMES, `${few} s with 20 buckets, ${many} s with 320`)
})
