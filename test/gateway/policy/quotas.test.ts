/** Negotiated limits laid over compiled tables: equal to those of projects.yaml, and stable while others change. */
import t from 'tap'
import { createPolicy } from '../../../gateway/policy/policy.js'
import type { QuotaForNow } from '../../../gateway/policy/quotas.js'
import { compiled, projectEntry, projectLimits } from './documents.js'

const quota = { sustained: 100, algorithm: 'sliding-window', lease: true } as const
const limits = projectLimits('limits.yaml', {
  buckets: { all: ['*'], search: ['/search/**'] },
  limits: [{ for: [{}], quotas: { all: quota } }],
})
const acme = { id: 'acme', plan: 'growth', environment: 'production' }
const entry = (overrides: object) => projectEntry({ ...acme, overrides: overrides as never })

function forNow(bucket: string, quota: QuotaForNow['quota'], project = 'acme'): QuotaForNow {
  return {
    project,
    bucket,
    quota,
    source: { file: `/projects/${project}/overrides/${bucket}`, line: undefined },
  }
}

t.test('a limit set for now gives the quotas and the patterns that projects.yaml would', async t => {
  for (const overrides of [
    { all: { burst: 5 } },
    { all: 'unlimited', search: { sustained: 1 } },
    { search: { windows: [{ name: 'day', requests: 9, per: 'day' }], algorithm: 'token-bucket' } },
    { all: { sustained: 7, trial: { burst: 2 } } },
  ] as const) {
    const { policy } = compiled([limits], { projects: [entry({})] })
    const quotas = Object.entries(overrides).map(([bucket, quota]) => forNow(bucket, quota as never))
    const now = createPolicy(policy.parts, { quotas }).tableOf(acme)
    const written = compiled([limits], { projects: [entry(overrides)] }).policy.tableOf(acme)
    const shown = (table: typeof now) =>
      [...(table?.rules.values() ?? []), ...(table?.trials?.values() ?? [])].map(({ id, mode, config }) => ({
        ...{ id, mode, config },
      }))
    t.same(shown(now), shown(written))
    t.same(now?.buckets.enforce.find('GET', '/search/x'), written?.buckets.enforce.find('GET', '/search/x'))
  }
})

t.test(
  'its rule stays the same while other limits come and go, so that leased tokens stay valid',
  async t => {
    const { policy } = compiled([limits], { projects: [entry({})] })
    const own = forNow('all', { sustained: 50 })
    const ruleIn = (...others: QuotaForNow[]) =>
      createPolicy(policy.parts, { quotas: [own, ...others] })
        .tableOf(acme)
        ?.rules.get('all')
    const first = ruleIn()
    t.match(first, { config: { sustained: 50, lease: true } })
    t.equal(ruleIn(forNow('search', { burst: 1 }), forNow('all', { burst: 9 }, 'other')), first)
    t.not(
      createPolicy(policy.parts, { quotas: [forNow('all', { sustained: 50 })] })
        .tableOf(acme)
        ?.rules.get('all'),
      first,
    )
  },
)

t.test('without a limit of its own, a project has the very table of the files', async t => {
  const { policy } = compiled([limits], { projects: [entry({ all: { burst: 5 } })] })
  const quotas = [forNow('all', { burst: 9 }, 'other'), forNow('gone', { burst: 9 })]
  t.equal(createPolicy(policy.parts, { quotas }).tableOf(acme), policy.tableOf(acme))
})
