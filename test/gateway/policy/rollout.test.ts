import fc from 'fast-check'
import t from 'tap'
import type { PolicyFile } from '../../../config/types.js'
import type { Quota, QuotaOverride, Trial } from '../../../config/words/quota.js'
import { isInside } from '../../../config/words/share.js'
import { factsOf } from '../../../gateway/listen/written.js'
import type { PolicyConfig } from '../../../gateway/policy/documents.js'
import type { Policy } from '../../../gateway/policy/policy.js'
import type { Project } from '../../../gateway/types.js'
import { compiled, projectEntry, projectLimits } from './documents.js'

const quota = (sustained: number, trial?: Trial): Quota => ({
  burst: 10,
  sustained,
  algorithm: 'fixed-window',
  lease: true,
  ...(trial && { trial }),
})
const fileOf = (name: string, patterns: readonly string[], quota: Quota, enforceFor?: number) =>
  projectLimits(`${name}.yaml`, {
    ...(enforceFor !== undefined && { enforceFor }),
    buckets: { [name]: patterns },
    limits: [{ for: [{}], quotas: { [name]: quota } }],
  })
function policyOf(files: readonly PolicyFile[], projects: PolicyConfig['projects'] = []): Policy {
  const { policy, faults } = compiled(files, { projects })
  t.same(faults, [])
  return policy
}
const projectOf = (id: string): Project => ({ id, plan: 'growth', environment: 'production' })
const get = (path: string) => factsOf({ id: '', method: 'GET', path, host: '', client: '', network: '' })
const matchOf = (policy: Policy, path: string, id: string) =>
  policy.match(get(path), projectOf(id)).map(({ rule: { id, mode } }) => `${mode} ${id}`)

t.test(
  'a share encloses that part of ten thousand projects, and a larger share all of a smaller one',
  async t => {
    const [quarter, half] = [25, 50].map(share =>
      policyOf([fileOf('rest', ['*'], quota(9)), fileOf('shared', ['/a'], quota(1), share)]),
    ) as [Policy, Policy]
    const ids = Array.from({ length: 10_000 }, (_, i) => `project-${(i * 7919) % 10_007}-${i % 3}`)
    const insideOf = (policy: Policy) =>
      new Set(ids.filter(id => matchOf(policy, '/a', id)[0] === 'enforce shared'))
    const [few, many] = [insideOf(quarter), insideOf(half)]
    t.ok(Math.abs(few.size - 2500) <= 200, `${few.size} of 10,000`)
    t.ok(Math.abs(many.size - 5000) <= 200, `${many.size} of 10,000`)
    t.same(
      [...few].filter(id => !many.has(id)),
      [],
    )
  },
)

t.test('a project inside a share is inside every larger share', async t => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.double({ min: 0, max: 100, noNaN: true }),
      fc.double({ min: 0, max: 100, noNaN: true }),
      (key, a, b) => {
        const [small, large] = [Math.min(a, b), Math.max(a, b)]
        return !isInside(small, key) || isInside(large, key)
      },
    ),
  )
  t.end()
})

t.test('outside a share a request falls to the next enforced bucket, and the share only reports', async t => {
  const policy = policyOf([
    fileOf('rest', ['*'], quota(9)),
    fileOf('few', ['/a/b'], quota(1), 10),
    fileOf('many', ['/a/**'], quota(2), 60),
  ])
  const seen = new Map<string, string>()
  for (let i = 0; i < 200; i += 1) seen.set(matchOf(policy, '/a/b', `p${i}`).join(', '), `p${i}`)
  t.same([...seen.keys()].sort(), [
    'enforce few',
    'enforce many, report-only few',
    'enforce rest, report-only few',
  ])
  const [inside, between, outside] = [...seen].sort().map(([, id]) => id) as [string, string, string]
  t.same(matchOf(policy, '/a/c', inside), ['enforce many'])
  t.same(matchOf(policy, '/a/c', between), ['enforce many'])
  t.same(matchOf(policy, '/a/c', outside), ['enforce rest', 'report-only many'])
  t.same(matchOf(policy, '/else', outside), ['enforce rest'])
})

t.test('a trial reports behind its bucket, uses its algorithm, and never leases', async t => {
  const policy = policyOf([fileOf('rest', ['*'], quota(9, { burst: 10, sustained: 5 }))])
  t.same(matchOf(policy, '/a', 'acme'), ['enforce rest', 'report-only rest.trial'])
  const [, trial] = policy.match(get('/a'), projectOf('acme'))
  t.match(trial, { route: '*', rule: { config: { sustained: 5, algorithm: 'fixed-window', lease: false } } })
  const own = policyOf([
    fileOf('rest', ['*'], quota(9, { burst: 10, sustained: 5, algorithm: 'token-bucket' })),
  ])
  t.match(own.match(get('/a'), projectOf('acme'))[1]?.rule.config, { algorithm: 'token-bucket' })
})

t.test('a trial keeps what a project’s override fixes', async t => {
  const overrides: Record<string, Record<string, QuotaOverride>> = {
    plain: {},
    half: { rest: { sustained: 90 } },
    whole: { rest: { burst: 30, sustained: 90 } },
    own: { rest: { sustained: 90, trial: { sustained: 70 } } },
    'only-trial': { rest: { trial: { burst: 7 } } },
  }
  const projects = Object.entries(overrides).map(([id, overrides]) =>
    projectEntry({ ...projectOf(id), overrides }),
  )
  const policy = policyOf([fileOf('rest', ['*'], quota(9, { burst: 8, sustained: 5 }), 99.99)], projects)
  const triedOf = (id: string) => {
    const { burst, sustained } = (policy.tableOf(projectOf(id))?.trials?.get('rest')?.config ??
      {}) as Partial<Quota>
    return [burst, sustained]
  }
  t.same(triedOf('plain'), [8, 5])
  t.same(triedOf('half'), [8, 90], 'what the override sets stays')
  t.same(triedOf('whole'), [undefined, undefined], 'nothing is left to try')
  t.same(triedOf('own'), [10, 70], 'what the override’s trial leaves out comes from its quota')
  t.same(triedOf('only-trial'), [7, 9])
})

t.test('without a trial or share, tables have no extra entries', async t => {
  const policy = policyOf([fileOf('rest', ['*'], quota(9))])
  const table = policy.columns.get('growth/production')
  t.equal(policy.tableOf(projectOf('acme')), table)
  t.notOk(table?.trials)
  t.notOk(table?.outside)
})
