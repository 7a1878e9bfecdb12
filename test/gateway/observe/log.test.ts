import fc from 'fast-check'
import t from 'tap'
import { decisionLog, type LoggedDecisions } from '../../../gateway/observe/decision-log.js'
import { createLog, isLogLevel } from '../../../gateway/observe/log.js'
import { decisionRecords } from '../../../gateway/observe/record.js'
import { Redactor } from '../../../gateway/observe/redact.js'
import type { Finished } from '../../../gateway/verdict.js'
import { matchList } from '../../helpers/lists.js'
import { finished, outcome, reading, rule } from './events.js'

const words = new Set([
  'admin',
  'identities',
  'sessions',
  'whoami',
  'users',
  'edit',
  'credentials',
  'oauth2',
  'self-service',
])
const redactor = new Redactor(Buffer.from('a salt of this process'), words)
const limited = (changes = {}) =>
  outcome({ result: 'limited', readings: [reading({ used: 10, violated: true })], ...changes })
const reportOnly = (changes = {}) =>
  limited({ rule: rule({ id: 'session-delete', kind: 'in-flight', mode: 'report-only' }), ...changes })
const records = (event: Finished, sample?: number) =>
  decisionRecords(event, { redactor, sample, wants: () => true })

/** A log that records its lines. */
function memoryLog(level: Parameters<typeof createLog>[0]['level'] = 'debug') {
  const lines: string[] = []
  const log = createLog({ level, terminal: false, destination: { write: line => void lines.push(line) } })
  return { log, lines, parsed: () => lines.map(line => JSON.parse(line)) }
}

t.test('a refusal gives one record with everything needed to judge it again', async t => {
  t.strictSame(records(finished({ outcomes: [limited()] })), [
    {
      v: 1,
      ts: '2026-01-02T03:04:05.006Z',
      id: 'request-1',
      client_request_id: null,
      traceparent: null,
      decision: 'deny',
      mode: 'enforce',
      rule: 'catch-all',
      kind: 'project-limits',
      rev: 'sha256:1234',
      src: 'config/policies/project-limits.yaml:20',
      upstream: 'identity',
      project: 'acme',
      plan: 'growth',
      environment: 'production',
      method: 'GET',
      route: '*',
      path: '/sessions/whoami',
      key: records(finished({ outcomes: [limited()] }))[0]?.key,
      ip: '203.0.113.0/24',
      client: redactor.hash('203.0.113.77'),
      ja3: null,
      ja4: null,
      auth: 'anonymous',
      verified: false,
      credential: null,
      identifier: null,
      upgrade: false,
      preflight: false,
      parts: {},
      counters: [{ policy: 'catch-all.burst', q: 10, used: 10, t_ms: 251, w_ms: 1000 }],
      beside: [],
      would_status: 429,
      sent_status: 429,
      store: 'memory',
      limiter_us: 40,
      duration_ms: 12,
      sample: 1,
    },
  ])
})

t.test('a record is named after the rule that refused, and holds the counters of all rules', async t => {
  const slots = limited({
    rule: rule({ id: 'identities-write', kind: 'in-flight' }),
    readings: [
      reading({ policy: 'identities-write', quota: 1, windowMs: undefined, used: 1, violated: true }),
    ],
  })
  const [record, ...more] = records(finished({ outcomes: [outcome(), slots] }))
  t.match(record, { rule: 'identities-write', decision: 'deny' })
  t.same(
    record?.counters.map(({ policy }) => policy),
    ['identities-write', 'catch-all.burst'],
  )
  t.same(more, [])
})

t.test('a record holds what a replay needs of report-only rules and key parts, as hashes', async t => {
  const byTenant = rule({ id: 'tenant', mode: 'report-only', key: ['header:x-tenant', 'email-or-flow'] })
  const key = 'sluice:1:*:{volumetric:tenant:9:canary:44:canary}:r'
  const [record] = records(finished({ reportOnly: [outcome({ rule: byTenant, key })] }), 1)
  t.match(record?.parts, {
    'header:x-tenant': redactor.hash('canary-header'),
    'email-or-flow': redactor.hash(key),
  })
  matchList(t, record?.beside, [
    { rule: 'tenant', result: 'allowed', key: redactor.hash(key), counters: [{ q: 10 }] },
  ])
  t.notMatch(JSON.stringify(record), 'canary')
})

t.test('each kind of decision has its own name in the record', async t => {
  const one = (event: Finished, sample?: number) =>
    records(event, sample).map(({ decision, would_status, sent_status }) => [
      decision,
      would_status,
      sent_status,
    ])
  t.same(one(finished()), [], 'an allowed request is not recorded')
  t.same(one(finished(), 0.25), [['allow', null, 200]], 'a sampled allowed request is recorded')
  t.equal(records(finished(), 0.25)[0]?.sample, 0.25)
  t.same(one(finished({ reportOnly: [reportOnly(), outcome()] })), [['would_deny', 429, 200]])
  t.same(one(finished({ outcomes: [limited()], reportOnly: [reportOnly()] })), [
    ['deny', 429, 429],
    ['would_deny', 429, 429],
  ])
  const open = outcome({ store: 'none', readings: [reading({ used: undefined })] })
  t.same(one(finished({ outcomes: [outcome(), open] })), [['error_open', null, 200]])
  t.equal(records(finished({ outcomes: [open] }))[0]?.counters[0]?.used, null)
  const closed = outcome({ result: 'unavailable', store: 'none' })
  t.same(one(finished({ outcomes: [limited(), closed], status: 503 })), [['error_closed', 503, 503]])
  t.same(one(finished({ outcomes: [] })), [], 'a request to which no rule applies is not recorded')
  t.same(
    one(finished({ outcomes: [] }), 1),
    [['allow', null, 200]],
    'a request to which no rule applies is recorded when all are',
  )
  t.same(one(finished({ verdict: undefined })), [], 'a malformed request is not recorded')
})

t.test('no record holds personal data in clear', async t => {
  const secrets = [
    'jane@example.com',
    'jane%40example.com',
    '9f1c2d3e-1111-2222-3333-444455556666',
    'tok3nTok3n99',
    '+4915112345',
  ]
  for (const secret of secrets) {
    const event = finished({
      facts: {
        path: `/users/${secret}/edit`,
        network: '203.0.113.77',
        client: '203.0.113.77',
      },
      outcomes: [limited({ key: `sluice:1:{acme}:e:x:${secret}` })],
    })
    const text = JSON.stringify(records(event))
    t.notMatch(text, secret, secret)
    t.notMatch(text, /203\.0\.113\.77|canary/)
    t.match(text, /"path":"\/users\/~[\w-]{16}\/edit"/, 'the shape of the path is kept')
  }
  const ipv6 = finished({
    facts: { network: '2001:db8:1:2::/64' },
    outcomes: [limited()],
  })
  t.equal(records(ipv6)[0]?.ip, '2001:db8:1:2::/64')

  const keyOf = (redactor: Redactor) =>
    decisionRecords(finished({ outcomes: [limited()] }), { redactor, sample: 1, wants: () => true })[0]?.key
  t.equal(keyOf(redactor), keyOf(redactor), 'equal keys have equal hashes')
  t.not(
    keyOf(redactor),
    keyOf(new Redactor(Buffer.from('another'), words)),
    'another salt gives other hashes',
  )
})

t.test(
  'a logged path keeps words of the configuration, and hides parameters and everything else',
  async t => {
    const route = 'DELETE /admin/identities/{id}/credentials/{type}'
    t.match(
      redactor.path('/admin/identities/users/credentials/totp', route),
      /^\/admin\/identities\/~\S{16}\/credentials\/~\S{16}$/,
    )
    t.match(redactor.path('/users/alice-smith', '*'), /^\/users\/~\S{16}$/)
    t.match(redactor.path('/john-doe', '/admin/*'), /^\/~\S{16}$/)
    t.equal(redactor.path('/', '*'), '/')
    t.equal(redactor.path('/admin/oauth2/self-service/', '*'), '/admin/oauth2/self-service/')
    fc.assert(
      fc.property(
        fc.webPath(),
        path => redactor.path(path, '*').split('/').length === path.split('/').length,
      ),
    )
  },
)

t.test('refused and would-be refused requests are always logged, allowed ones as configured', async t => {
  const linesOf = (decisions: LoggedDecisions, event: Finished) => {
    const { log, parsed } = memoryLog()
    const observer = decisionLog(decisions, redactor, log)
    observer.finished(event)
    return parsed().map(({ decision }) => decision)
  }
  t.same(linesOf('refused', finished()), [])
  t.same(linesOf('refused', finished({ verdict: undefined })), [])
  t.same(linesOf('refused', finished({ outcomes: [limited()] })), ['deny'])
  t.same(linesOf(0, finished({ reportOnly: [reportOnly()] })), ['would_deny'])
  t.same(linesOf('all', finished()), ['allow'])
  t.same(linesOf(0, finished()), [])

  const { log, parsed } = memoryLog()
  const observer = decisionLog(0.5, redactor, log)
  for (let i = 0; i < 150; i++) observer.finished(finished())
  t.ok(parsed().length > 30 && parsed().length < 120, `about half of 150: ${parsed().length}`)
  t.ok(parsed().every(({ sample }) => sample === 0.5))
})

t.test('a flood logs a hundred lines a second for each rule, then how many were dropped', async t => {
  const { log, parsed } = memoryLog()
  const all = memoryLog()
  const everything = decisionLog('all', redactor, all.log)
  for (let i = 0; i < 250; i++) everything.finished(finished({ outcomes: [limited()] }))
  t.equal(all.lines.length, 250, 'with all no line is dropped')

  const observer = decisionLog('refused', redactor, log)
  const scim = limited({ rule: rule({ id: 'scim' }) })
  for (let i = 0; i < 250; i++) observer.finished(finished({ outcomes: [limited()] }))
  observer.finished(finished({ outcomes: [scim] }))
  t.equal(parsed().filter(line => line.rule === 'catch-all').length, 100)
  t.equal(parsed().filter(line => line.rule === 'scim').length, 1, 'another rule has its own lines')
  await new Promise(resolve => setTimeout(resolve, 1100))
  t.match(parsed().at(-1), { level: 'warn', msg: 'decisions dropped', rule: 'catch-all', dropped: 150 })
  observer.finished(finished({ outcomes: [limited()] }))
  t.match(parsed().at(-1), { decision: 'deny' }, 'the next second has lines again')
  for (let i = 0; i < 120; i++) observer.finished(finished({ outcomes: [limited()] }))
  await observer.close?.()
  t.match(parsed().at(-1), { dropped: 21 }, 'the remaining count is logged on closing')
})

t.test('a log line is JSON with time and level, and never holds a credential', async t => {
  const { log, lines, parsed } = memoryLog('info')
  log.debug({}, 'not at this level')
  log.info({ n: 1 }, 'hello')
  t.match(parsed()[0], { level: 'info', n: 1, msg: 'hello', time: /^\d{4}-.*Z$/ })
  const canary = 'canary-hunter2'
  log.error(
    {
      authorization: canary,
      headers: { authorization: canary, cookie: canary, 'set-cookie': [canary], 'x-api-key': canary },
      directory: { scim: { secret: canary }, webhook: { secret: canary }, access_token: canary },
      token: canary,
    },
    'oops',
  )
  t.notMatch(lines.join(''), canary)
  t.match(parsed()[1], { headers: { authorization: '[redacted]' } })
  log.warn({ err: new Error('broken') }, 'with an error')
  t.match(parsed()[2], { err: { type: 'Error', message: 'broken', stack: /log\.test/ } })
  const command = { name: 'auth', args: [canary] }
  const cause = Object.assign(new Error(canary), { command })
  const failed = Object.assign(new Error('WRONGPASS'), {
    ...{ code: 'E', command, cause },
    ...{ previousErrors: [cause], lastNodeError: cause },
  })
  log.warn({ err: failed }, 'a library that hangs its commands on its errors')
  log.warn({ err: new AggregateError([failed], 'all failed') }, 'or several errors on one')
  log.warn({ err: canary.length }, 'not an error')
  t.notMatch(lines.join(''), canary)
  t.match(parsed()[3], { err: { type: 'Error', message: 'WRONGPASS', code: 'E', stack: /log\.test/ } })
  t.equal(parsed()[5].err, canary.length)
  t.ok(isLogLevel('warn'))
  t.notOk(isLogLevel('verbose'))
})
