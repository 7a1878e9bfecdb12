/**
 * A policy gives the same responses with and without its report-only rules and files: real files, matcher and counters.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { PROJECTS, testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { oneBucket } from '../helpers/policies.js'
import { answersOf, GATEWAY } from './answers.js'

const trial = (mode: string) => `version: 1
kind: project-limits
mode: ${mode}
buckets: { trial: [/echo/new] }
limits: [{ for: [{ plans: [growth] }], quotas: { trial: { burst: 1, sustained: 1 } } }]
`

t.test('a report-only bucket takes no request from an enforced one', async t => {
  const upstream = await startApp(t, (_req, res) => res.end())
  const policies = { 'limits.yaml': oneBucket(3), 'trial.yaml': trial('report-only') }
  const gateway = await testGateway(t, { upstream, policies })
  const answers = []
  for (let i = 0; i < 4; i += 1) {
    answers.push(await send(`${gateway.url}/echo/new`, { headers: { host: 'acme.localhost' } }))
  }
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200, 429],
  )
  t.match(answers[0]?.headers.ratelimit, /^"all.burst";r=2/)
  const records = gateway.lines.filter(line => 'decision' in line)
  t.same(
    records.map(({ decision, rule }) => `${decision} ${rule}`),
    ['would_deny trial', 'would_deny trial', 'deny all', 'would_deny trial'],
    'the report-only bucket also counts requests that an enforced bucket refuses',
  )
})

/** Patterns for the request paths; in addition, one bucket of each table has a lone `*`. */
const PATTERNS = ['/a', 'POST /a', '/a/{id}', '/a/*', '/a/**', 'GET /b', '/b/**'] as const
const mode = fc.constantFrom('enforce', 'report-only')
const quota = fc.record({
  burst: fc.integer({ min: 1, max: 4 }),
  sustained: fc.integer({ min: 1, max: 9 }),
  algorithm: fc.constantFrom('sliding-window', 'fixed-window', 'token-bucket'),
})

/** A file of one mode: its buckets divide the patterns among them; each has a quota, or none. */
const limitsOf = (mode: string) =>
  fc
    .record({
      patterns: fc.uniqueArray(fc.constantFrom(...PATTERNS), { maxLength: 5 }),
      quotas: fc.array(fc.option(quota), { minLength: 5, maxLength: 5 }),
      rest: quota,
    })
    .map(({ patterns, quotas, rest }) => {
      const named = [...patterns.map((pattern, i) => [`${mode}-${i}`, [pattern]]), [`${mode}-rest`, ['*']]]
      const given = patterns.flatMap((_, i) => (quotas[i] ? [[`${mode}-${i}`, quotas[i]]] : []))
      return {
        version: 1,
        kind: 'project-limits',
        mode,
        buckets: Object.fromEntries(named),
        limits: [{ for: [{}], quotas: Object.fromEntries([...given, [`${mode}-rest`, rest]]) }],
      }
    })
const rulesOf = <T>(kind: string, own: fc.Arbitrary<T>) =>
  fc
    .array(
      fc.record({
        own,
        mode,
        match: fc.uniqueArray(fc.constantFrom('/a', '/a/**', 'POST /b/**', '/**'), {
          minLength: 1,
          maxLength: 2,
        }),
        key: fc.constantFrom(['project'], ['client-ip'], ['project', 'full-path']),
      }),
      { maxLength: 3 },
    )
    .map(rules => ({
      version: 1,
      kind,
      rules: rules.map(({ own, ...rule }, i) => ({ id: `${kind}-${i}`, ...rule, ...own })),
    }))
const access = fc
  .uniqueArray(
    fc.record({
      mode,
      action: fc.constantFrom('exempt', 'deny'),
      place: fc.constantFrom(
        { networks: ['192.0.2.0/24'] },
        { networks: ['192.0.2.1'] },
        { projects: ['acme'] },
        { projects: ['host:else.where'] },
      ),
    }),
    { maxLength: 3, selector: rule => JSON.stringify(rule) },
  )
  .map(rules => ({
    version: 1,
    kind: 'access',
    rules: rules.map(({ place, ...rule }, i) => ({ id: `access-${i}`, ...rule, ...place })),
  }))
const policy = fc.record({
  access,
  enforced: limitsOf('enforce'),
  watched: limitsOf('report-only'),
  slots: rulesOf('in-flight', fc.record({ max: fc.integer({ min: 1, max: 2 }) })),
  floods: rulesOf(
    'volumetric',
    fc.integer({ min: 1, max: 6 }).map(requests => ({ quota: { requests, per: '5s' }, blockFor: '7s' })),
  ),
})
type Policy = typeof policy extends fc.Arbitrary<infer T> ? T : never

const traffic = fc.array(
  fc.record({
    pauseMs: fc.constantFrom(0, 0, 10, 700, 6000),
    method: fc.constantFrom('GET', 'POST', 'DELETE'),
    path: fc.constantFrom('/a', '/a/1', '/a/1/2', '/b', '/b/c', '/c'),
    host: fc.constantFrom('acme.localhost', 'dev.localhost', 'else.where'),
    client: fc.constantFrom('192.0.2.1', '192.0.2.2'),
    durationMs: fc.constantFrom(0, 300, 5000),
  }),
  { minLength: 1, maxLength: 30 },
)

/** Leaves out files without rules, which are invalid. */
const withRules = (files: Partial<Policy>) =>
  Object.fromEntries(Object.entries(files).filter(([, file]) => !('rules' in file) || file.rules.length > 0))

function withoutReports({ enforced, slots, floods, access }: Policy): Partial<Policy> {
  const strip = <R extends { mode: string }>(file: { version: number; kind: string; rules: R[] }) => ({
    ...file,
    rules: file.rules.filter(rule => rule.mode === 'enforce'),
  })
  return { enforced, slots: strip(slots), floods: strip(floods), access: strip(access) }
}

t.test('removing every report-only rule and file changes no response', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'gateway.yaml'), GATEWAY)
  writeFileSync(join(folder, 'projects.yaml'), PROJECTS)
  let refused = 0
  await fc.assert(
    fc.asyncProperty(policy, traffic, async (all, requests) => {
      const without = await answersOf(folder, withRules(withoutReports(all)), requests)
      t.strictSame(await answersOf(folder, withRules(all), requests), without)
      refused += without.filter(answer => (answer as { refusal?: object }).refusal !== undefined).length
      return t.passing()
    }),
    { numRuns: 60 },
  )
  t.ok(refused > 0, 'some requests were refused')
})
