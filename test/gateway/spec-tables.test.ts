/** The shipped policies, row by row of the specification's tables: which limit actually applies to a request. */
import t from 'tap'
import { loadConfig } from '../../config/load.js'
import type { Quota } from '../../config/words/quota.js'
import { compile } from '../../gateway/configured/compile.js'
import { builtIn, pluginSchemas } from '../../gateway/plugins.js'
import type { Environment, Facts, Plan, Rule } from '../../gateway/types.js'
import { inProject } from '../helpers/root.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const PLANS: Plan[] = ['developer', 'production', 'essential', 'growth', 'scale', 'enterprise']

function snapshot() {
  const loaded = loadConfig(inProject('config'), { env: {}, plugins: pluginSchemas })
  if ('problems' in loaded) throw new Error('the shipped configuration does not load')
  const compiled = compile(loaded.config, builtIn, quiet)
  if ('problems' in compiled) throw new Error('the shipped configuration does not compile')
  return compiled.compiled.policy
}

const shipped = snapshot()

function rulesFor(request: string, plan: Plan, environment: Environment): Rule[] {
  const [method, path] = request.split(' ') as [string, string]
  const facts = { method, path, header: () => undefined } as Partial<Facts> as Facts
  return shipped.match(facts, { id: 'somebody', plan, environment }).map(({ rule }) => rule)
}

/** The burst and sustained quota that apply to a request, as `80 / 1800`. */
function limitOf(request: string, plan: Plan, environment: Environment): string {
  const [rule] = rulesFor(request, plan, environment)
  if (rule?.kind !== 'project-limits') return 'none'
  const { burst, sustained } = rule.config as Quota
  return `${burst} / ${sustained}`
}

t.test('Development, Staging and the Developer plan have the limits of the specification', async t => {
  const table: [request: string, limit: string][] = [
    ['GET /sessions/whoami', '10 / 300'],
    ['POST /admin/oauth2/introspect', '10 / 300'],
    ['GET /relation-tuples/check', '10 / 300'],
    ['POST /relation-tuples/check', '10 / 300'],
    ['GET /admin/identities', '1 / 10'],
    ['HEAD /admin/identities', '1 / 10'],
    ['POST /admin/identities', '1 / 10'],
    ['PATCH /admin/identities', '1 / 10'],
    ['POST /admin/recovery/link', '1 / 10'],
    ['POST /admin/recovery/code', '1 / 10'],
    ['POST /self-service/registration', '1 / 10'],
    ['POST /self-service/recovery', '1 / 10'],
    ['POST /self-service/settings', '1 / 10'],
    ['POST /self-service/verification', '1 / 10'],
    ['GET /scim', '1 / 10'],
    ['POST /scim/v2/Users', '1 / 10'],
    ['PATCH /api/scim/v2.0/d1/Users/u1', '1 / 10'],
    ['GET /api/scim/oauth/authorize', '5 / 150'],
    ['GET /api/scim/oauth/callback', '5 / 150'],
    ['GET /api/scim/setup/page', '5 / 150'],
    ['GET /', '5 / 150'],
    ['GET /self-service/registration', '5 / 150'],
    ['GET /admin/identities/7', '5 / 150'],
    ['POST /admin/recovery', '5 / 150'],
    ['POST /admin/recovery/link/deeper', '5 / 150'],
    ['GET /sessions/whoami/else', '5 / 150'],
  ]
  for (const [request, limit] of table) {
    for (const plan of PLANS) {
      for (const environment of ['development', 'staging'] as const) {
        t.equal(limitOf(request, plan, environment), limit, `${request} ${plan} ${environment}`)
      }
    }
    t.equal(limitOf(request, 'developer', 'production'), limit, `${request} developer production`)
  }
})

t.test(
  'Production has the limits of the specification, Essential those of Production, Scale those of Growth',
  async t => {
    const table: [request: string, production: string, growth: string, enterprise: string][] = [
      ['GET /sessions/whoami', '80 / 1800', '800 / 18000', '1200 / 36000'],
      ['POST /admin/oauth2/introspect', '80 / 1800', '800 / 18000', '1200 / 36000'],
      ['GET /relation-tuples/check', '80 / 1800', '800 / 18000', '1200 / 36000'],
      ['GET /admin/identities', '10 / 300', '20 / 600', '60 / 1200'],
      ['POST /admin/recovery/link', '10 / 30', '10 / 300', '20 / 600'],
      ['POST /scim/v2/Users', '10 / 300', '10 / 300', '20 / 600'],
      ['GET /', '40 / 900', '400 / 9000', '800 / 18000'],
      // Only the buckets listed apply in Production: these fall to the catch-all.
      ['POST /admin/identities', '40 / 900', '400 / 9000', '800 / 18000'],
      ['PATCH /admin/identities', '40 / 900', '400 / 9000', '800 / 18000'],
      ['POST /self-service/registration', '40 / 900', '400 / 9000', '800 / 18000'],
      ['POST /self-service/verification', '40 / 900', '400 / 9000', '800 / 18000'],
    ]
    for (const [request, production, growth, enterprise] of table) {
      for (const plan of ['production', 'essential'] as const)
        t.equal(limitOf(request, plan, 'production'), production, `${request} ${plan}`)
      for (const plan of ['growth', 'scale'] as const)
        t.equal(limitOf(request, plan, 'production'), growth, `${request} ${plan}`)
      t.equal(limitOf(request, 'enterprise', 'production'), enterprise, `${request} enterprise`)
    }
  },
)

t.test('in-flight rules have the endpoints, methods, keys and modes of the specification', async t => {
  const full = ['project', 'full-path']
  const table: [requests: string[], mode: Rule['mode'], key: string[]][] = [
    [['POST /admin/identities', 'PATCH /admin/identities'], 'enforce', full],
    [['PUT /admin/identities/7', 'PATCH /admin/identities/7', 'DELETE /admin/identities/7'], 'enforce', full],
    [['DELETE /admin/identities/7/credentials/totp'], 'enforce', full],
    [['DELETE /admin/identities/7/sessions'], 'enforce', full],
    [['DELETE /admin/sessions/5'], 'report-only', full],
    [['PATCH /admin/sessions/5/extend'], 'report-only', full],
    [['POST /self-service/recovery'], 'report-only', ['project', 'path', 'email-or-flow']],
  ]
  for (const [requests, mode, key] of table) {
    for (const request of requests) {
      const rules = rulesFor(request, 'growth', 'production').filter(({ kind }) => kind === 'in-flight')
      t.match(rules, [{ mode, key, config: { max: 1, slotTtl: 15_000 } }], request)
    }
  }
  const exempt = [
    'GET /admin/identities',
    'HEAD /admin/identities/7',
    'OPTIONS /admin/identities/7',
    'GET /self-service/recovery',
  ]
  const unlisted = [
    'PUT /admin/identities',
    'POST /admin/identities/7',
    'DELETE /admin/identities/7/credentials',
    'PATCH /admin/sessions/5',
    'DELETE /self-service/recovery',
  ]
  for (const request of [...exempt, ...unlisted]) {
    t.strictSame(
      rulesFor(request, 'growth', 'production').filter(({ kind }) => kind === 'in-flight'),
      [],
      request,
    )
  }
})
