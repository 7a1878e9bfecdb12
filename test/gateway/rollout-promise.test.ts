/** Trials, and rules outside their share, change no response: without them every status and every field is the same. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { isInside } from '../../config/words/share.js'
import { counterKey } from '../../gateway/decide/key.js'
import { factsOf } from '../../gateway/listen/written.js'
import { PROJECTS } from '../helpers/gateway.js'
import { answersOf, GATEWAY, type Requests } from './answers.js'

const PATTERNS = ['/a', 'POST /a', '/a/{id}', '/a/**', 'GET /b', '/b/**'] as const
const SHARES = ['1%', '20%', '50%', '80%', '99.5%'] as const

const numbers = fc.record({
  burst: fc.integer({ min: 1, max: 4 }),
  sustained: fc.integer({ min: 1, max: 9 }),
})
const quota = fc
  .tuple(
    numbers,
    fc.constantFrom('sliding-window', 'fixed-window', 'token-bucket'),
    fc.option(numbers, { nil: undefined }),
  )
  .map(([own, algorithm, trial]) => ({ ...own, algorithm, ...(trial && { trial }) }))

const share = fc.option(fc.constantFrom(...SHARES), { nil: undefined })

/** A file of buckets that divide the patterns among them; `rest` takes the others. */
const fileOf = (name: string, rest: boolean) =>
  fc
    .record({
      patterns: fc.uniqueArray(fc.constantFrom(...PATTERNS), { minLength: rest ? 0 : 1, maxLength: 4 }),
      quotas: fc.array(quota, { minLength: 5, maxLength: 5 }),
      enforceFor: rest ? fc.constant(undefined) : share,
    })
    .map(({ patterns, quotas, enforceFor }) => {
      const named = patterns.map((pattern, i) => [`${name}-${i}`, [pattern]] as const)
      const buckets = rest ? [...named, [`${name}-rest`, ['*']] as const] : named
      return {
        version: 1,
        kind: 'project-limits',
        mode: 'enforce',
        ...(enforceFor && { enforceFor }),
        buckets: Object.fromEntries(buckets),
        limits: [
          {
            for: [{}],
            quotas: Object.fromEntries(buckets.map(([id], i) => [id, quotas[i] as (typeof quotas)[number]])),
          },
        ],
      }
    })

const rules = fc
  .array(
    fc.record({
      match: fc.uniqueArray(fc.constantFrom('/a', '/a/**', 'POST /b/**'), { minLength: 1, maxLength: 2 }),
      key: fc.constantFrom(['project'] as const, ['client-ip'] as const),
      enforceFor: share,
      quota: fc.integer({ min: 1, max: 6 }).map(requests => ({ requests, per: '5s' })),
      blockFor: fc.constant('7s'),
    }),
    { maxLength: 3 },
  )
  .map(all => ({
    version: 1,
    kind: 'volumetric',
    rules: all.map(({ enforceFor, ...rule }, i) => ({
      id: `flood-${i}`,
      ...rule,
      ...(enforceFor && { enforceFor }),
    })),
  }))

/** No pattern may be in both files: it would be a tie. */
const policy = fc
  .record({ base: fileOf('base', true), tried: fileOf('tried', false), floods: rules })
  .filter(({ base, tried }) => {
    const taken = Object.values(base.buckets).flat()
    return !Object.values(tried.buckets)
      .flat()
      .some(pattern => taken.includes(pattern))
  })
type Policy = typeof policy extends fc.Arbitrary<infer T> ? T : never

/** A single caller, so that each share contains all of its requests or none. */
const caller = fc.record({
  host: fc.integer({ min: 0, max: 200 }).map(i => `host-${i}.example`),
  client: fc.integer({ min: 1, max: 200 }).map(i => `192.0.2.${i}`),
})
const requests = fc.array(
  fc.record({
    pauseMs: fc.constantFrom(0, 0, 10, 700, 6000),
    method: fc.constantFrom('GET', 'POST'),
    path: fc.constantFrom('/a', '/a/1', '/a/1/2', '/b', '/b/c', '/c'),
    durationMs: fc.constantFrom(0, 300),
  }),
  { minLength: 1, maxLength: 30 },
)

/** The policy without trials: what is in force for the caller stays, everything else is removed. */
function stripped({ base, tried, floods }: Policy, { host, client }: { host: string; client: string }) {
  const project = { id: `client:${client}`, plan: 'developer', environment: 'production' } as const
  const facts = factsOf({ id: '', network: client, client, host, method: 'POST', path: '/' })
  const isIn = (share: string | undefined, key: string) =>
    share === undefined || isInside(Number.parseFloat(share), key)
  const withoutTrials = <F extends Policy['base']>({ enforceFor: _, ...file }: F) => ({
    ...file,
    limits: file.limits.map(row => ({
      ...row,
      quotas: Object.fromEntries(
        Object.entries(row.quotas).map(([name, { trial: _, ...quota }]) => [name, quota]),
      ),
    })),
  })
  const keyOf = ({ id, key }: Policy['floods']['rules'][number]) =>
    counterKey(
      {
        ...{ id, key, kind: 'volumetric', mode: 'enforce', missing: 'skip', onStoreError: 'local' },
        config: {},
        source: { file: '', line: 0 },
      },
      { facts, project, route: '/', emailOrFlow: undefined },
    ) as string
  const kept = floods.rules
    .filter(rule => isIn(rule.enforceFor, keyOf(rule)))
    .map(({ enforceFor: _, ...rule }) => rule)
  return {
    base: withoutTrials(base),
    ...(isIn(tried.enforceFor, `project:${project.id}`) && { tried: withoutTrials(tried) }),
    ...(kept.length > 0 && { floods: { ...floods, rules: kept } }),
  }
}

t.test('removing every trial, and every rule outside its share, changes no response', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'gateway.yaml'), GATEWAY)
  writeFileSync(join(folder, 'projects.yaml'), PROJECTS)
  let [refused, outside] = [0, 0]
  await fc.assert(
    fc.asyncProperty(policy, caller, requests, async (all, sender, sent) => {
      const traffic: Requests = sent.map(request => ({ ...request, ...sender }))
      const { floods, ...limits } = all
      const bare = stripped(all, sender)
      const without = await answersOf(folder, bare, traffic)
      const whole = await answersOf(folder, floods.rules.length > 0 ? all : limits, traffic)
      t.strictSame(whole, without)
      refused += without.filter(answer => (answer as { refusal?: object }).refusal !== undefined).length
      outside += bare.tried === undefined ? 1 : 0
      return t.passing()
    }),
    { numRuns: 60 },
  )
  t.ok(refused > 0 && outside > 0, 'some requests were refused, and some callers were outside a share')
})
