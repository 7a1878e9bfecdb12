import t from 'tap'
import { type Families, rateLimitFields } from '../../../gateway/forward/fields.js'
import { rejectionOf } from '../../../gateway/forward/reject.js'
import type { Rule } from '../../../gateway/types.js'
import type { Outcome, Reading, Verdict } from '../../../gateway/verdict.js'

function rule(id: string, kind = 'project-limits'): Rule {
  const source = { file: 'policy.yaml', line: 1 }
  return {
    id,
    kind,
    mode: 'enforce',
    key: ['project'],
    missing: 'skip',
    onStoreError: 'local',
    config: {},
    source,
  }
}

function reading(
  policy: string,
  quota: number,
  windowMs: number | undefined,
  left: number | undefined,
  resetMs: number,
  violated = false,
): Reading {
  return {
    policy,
    quota,
    windowMs,
    left,
    used: left === undefined ? undefined : quota - left,
    resetMs,
    violated,
  }
}

function verdict(...outcomes: [Rule, Outcome['result'], ...Reading[]][]): Verdict {
  return {
    allowed: outcomes.every(([, result]) => result === 'allowed'),
    outcomes: outcomes.map(([rule, result, ...readings]) => ({
      rule,
      route: '*',
      key: 'k',
      result,
      store: 'memory',
      readings,
    })),
    reportOnly: [],
    settled: undefined,
    holdsSlot: false,
    answered() {},
    ended() {},
    upgraded() {},
    release() {},
  }
}

const scim = rule('scim')

function shown(given: Verdict, families: Families = 'both'): Record<string, string> {
  const fields = rateLimitFields(given, families)
  return Object.fromEntries(
    Array.from({ length: fields.length / 2 }, (_, i) => [fields[2 * i], fields[2 * i + 1]]),
  )
}

t.test(
  'an admitted response names every window, and the x- fields show the one with the least left',
  async t => {
    const admitted = verdict([
      scim,
      'allowed',
      reading('scim.burst', 10, 1000, 9, 400),
      reading('scim.sustained', 300, 60_000, 211, 41_200),
    ])
    t.strictSame(shown(admitted), {
      'RateLimit-Policy': '"scim.burst";q=10;w=1, "scim.sustained";q=300;w=60',
      RateLimit: '"scim.burst";r=9;t=1, "scim.sustained";r=211;t=42',
      'x-ratelimit-limit': '10, 10;w=1, 300;w=60',
      'x-ratelimit-remaining': '9',
      'x-ratelimit-reset': '1',
    })
  },
)

t.test('at a tie the x- fields show the longer window', async t => {
  const tie = verdict([
    scim,
    'allowed',
    reading('scim.burst', 10, 1000, 3, 400),
    reading('scim.sustained', 300, 60_000, 3, 41_200),
  ])
  t.match(shown(tie), {
    'x-ratelimit-limit': '300, 10;w=1, 300;w=60',
    'x-ratelimit-remaining': '3',
    'x-ratelimit-reset': '42',
  })
})

t.test('a refusal shows the violated window that resets last, in fields and body', async t => {
  const refused = verdict([
    scim,
    'limited',
    reading('scim.burst', 5, 1000, 0, 200, true),
    reading('scim.sustained', 15, 60_000, 0, 41_001, true),
  ])
  t.match(shown(refused), {
    RateLimit: '"scim.burst";r=0;t=1, "scim.sustained";r=0;t=42',
    'x-ratelimit-limit': '15, 5;w=1, 15;w=60',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': '42',
  })
  t.match(rejectionOf(refused, 'id'), {
    code: 'quota-exceeded',
    retryAfter: 42,
    policies: ['scim.burst', 'scim.sustained'],
  })
})

t.test('only the spent window counts as violated, and the other shows what it has left', async t => {
  const refused = verdict([
    scim,
    'limited',
    reading('scim.burst', 5, 1000, 5, 0),
    reading('scim.sustained', 15, 60_000, 0, 41_900, true),
  ])
  t.match(shown(refused), {
    RateLimit: '"scim.burst";r=5;t=1, "scim.sustained";r=0;t=42',
    'x-ratelimit-limit': '15, 5;w=1, 15;w=60',
  })
  t.strictSame(rejectionOf(refused, 'id').policies, ['scim.sustained'])
})

t.test('a full in-flight rule is named with its unit, and only on refusal', async t => {
  const windows = [reading('all.burst', 10, 1000, 9, 400), reading('all.sustained', 300, 60_000, 211, 41_200)]
  const writes = rule('identities-write', 'in-flight')
  const admitted = verdict(
    [rule('all'), 'allowed', ...windows],
    [writes, 'allowed', reading('identities-write', 1, undefined, 0, 1000)],
  )
  t.notMatch(shown(admitted)['RateLimit-Policy'], /identities-write/)
  const refused = verdict(
    [rule('all'), 'allowed', ...windows],
    [writes, 'limited', reading('identities-write', 1, undefined, 0, 1000, true)],
  )
  t.strictSame(shown(refused), {
    'RateLimit-Policy':
      '"all.burst";q=10;w=1, "all.sustained";q=300;w=60, "identities-write";q=1;qu="concurrent-requests"',
    RateLimit: '"all.burst";r=9;t=1, "all.sustained";r=211;t=42, "identities-write";r=0',
    'x-ratelimit-limit': '1, 10;w=1, 300;w=60',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': '1',
  })
  t.match(rejectionOf(refused, 'id'), {
    retryAfter: 1,
    policies: ['identities-write'],
  })
})

t.test('a rule whose quota changes between responses shows the current quota in each', async t => {
  const own = rule('own', 'own')
  const policyOf = (quota: number, windowMs = 1000) =>
    shown(verdict([own, 'allowed', reading('own', quota, windowMs, 3, 400)]))['RateLimit-Policy']
  t.equal(policyOf(10), '"own";q=10;w=1')
  t.equal(policyOf(500), '"own";q=500;w=1')
  t.equal(policyOf(500, 2000), '"own";q=500;w=2')
  t.equal(policyOf(10), '"own";q=10;w=1')
})

t.test('fields that would show a remaining quota are left out while the store cannot count', async t => {
  const blind = verdict([
    scim,
    'allowed',
    reading('scim.burst', 10, 1000, undefined, 0),
    reading('scim.sustained', 300, 60_000, undefined, 0),
  ])
  t.strictSame(shown(blind), {
    'RateLimit-Policy': '"scim.burst";q=10;w=1, "scim.sustained";q=300;w=60',
    'x-ratelimit-limit': '10, 10;w=1, 300;w=60',
  })
})

t.test('a rule that closes while the store is away refuses with limiter-unavailable', async t => {
  t.match(rejectionOf(verdict([scim, 'unavailable']), 'id'), { code: 'limiter-unavailable' })
})

t.test('each family of fields can be switched off, and a request without limits has neither', async t => {
  const admitted = verdict([scim, 'allowed', reading('scim.burst', 10, 1000, 9, 400)])
  t.strictSame(Object.keys(shown(admitted, 'ietf')), ['RateLimit-Policy', 'RateLimit'])
  t.strictSame(Object.keys(shown(admitted, 'x')), [
    'x-ratelimit-limit',
    'x-ratelimit-remaining',
    'x-ratelimit-reset',
  ])
  t.strictSame(shown(admitted, 'none'), {})
  t.strictSame(shown(verdict()), {})
})
