import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { ReplayDocument } from '../../tools/replay/document.js'
import { sluice } from '../helpers/command.js'
import { decisionRecord } from '../helpers/decision-lines.js'
import { matchesGolden } from '../helpers/golden.js'

const CONFIG = join('test', 'fixtures', 'replay')
const CANDIDATE = join(CONFIG, 'candidate')
const START = Date.UTC(2026, 0, 5, 10)

const lineOf = (record: object) => `${JSON.stringify(record)}\n`
const timeOf = (ms: number) => new Date(ms).toISOString()

interface Asked {
  /** Milliseconds after the start. */
  readonly at: number
  readonly method?: string
  readonly path?: string
  readonly project?: string
  readonly tenant?: string
  readonly lasts?: number
}

const recordOf = (
  { at, method = 'GET', path = '/items', project = 'acme', tenant, lasts = 5 }: Asked,
  i: number,
) =>
  decisionRecord({
    ts: timeOf(START + at),
    id: `request-${i}`,
    method,
    path,
    project,
    duration_ms: lasts,
    parts: tenant === undefined ? {} : { 'header:x-tenant': tenant },
  })

/** Bursts of acme, concurrent writes, and a tenant that floods. */
const TRAFFIC: readonly Asked[] = [
  ...Array.from({ length: 40 }, (_, i) => ({ at: i * 300 })),
  { at: 200_000, method: 'POST', path: '/items/1', lasts: 900 },
  { at: 200_500, method: 'POST', path: '/items/1' },
  { at: 200_950, method: 'POST', path: '/items/1' },
  ...Array.from({ length: 5 }, (_, i) => ({
    at: 3_600_000 + i * 1000,
    method: 'POST',
    path: `/items/~${'a'.repeat(15)}${i}`,
    project: 'globex',
    tenant: 'tenanthash123456',
  })),
]
const RECORDS = TRAFFIC.map(recordOf)

async function replay(stdin: string, ...words: string[]): Promise<ReplayDocument & { code: number }> {
  const { code, out, err } = await sluice(['replay', '-', '--config', CONFIG, '--json', ...words], { stdin })
  if (code === 2) throw new Error(err)
  return { code, ...JSON.parse(out) }
}

t.test('--json and the text are stable, and a candidate that refuses more gives exit code 1', async t => {
  const stdin = [...RECORDS.map(lineOf), '{"broken\n', 'something else\n'].join('')
  const words = ['replay', '-', '--policies', CANDIDATE, '--against', CONFIG, '--config', CONFIG]
  const { code, out } = await sluice([...words, '--json'], { stdin })
  t.equal(code, 1)
  matchesGolden(t, out, 'replay.json')
  const told = await sluice(words, { stdin })
  t.equal(told.code, 1)
  matchesGolden(t, told.out, 'replay.txt')
  const same = await sluice(['replay', '-', '--policies', CONFIG, '--against', CONFIG], { stdin })
  t.equal(same.code, 0)
})

t.test('slots are held for the duration of their requests, and for maxHold at most', async t => {
  const ruleOf = ({ candidate }: ReplayDocument, id: string) =>
    candidate.rules.find(({ rule }) => rule === id)
  const held = await replay(RECORDS.map(lineOf).join(''), '--policies', CANDIDATE)
  t.match(ruleOf(held, 'item-write'), {
    // All rules are asked together: two of these were refused by another rule.
    requests: 8,
    refused: 1,
    first: { at: timeOf(START + 200_500), path: '/items/1' },
  })
  t.match(ruleOf(held, 'tenant-flood'), { refused: 2, projects: 1 })

  const dir = t.testdir()
  const rules = (maxHold: string) => `version: 1
kind: in-flight
rules: [{ id: write, match: [POST /items], key: [project], max: 1, maxHold: ${maxHold}, mode: enforce }]
`
  const long = [0, 1500, 3000].map(at => ({ at, method: 'POST', lasts: 60_000 }))
  const stdin = long.map(recordOf).map(lineOf).join('')
  for (const [maxHold, refused] of [
    ['1h', 2],
    ['2s', 1],
    ['1s', 0],
  ] as const) {
    writeFileSync(join(dir, 'in-flight.yaml'), rules(maxHold))
    t.equal(ruleOf(await replay(stdin, '--policies', dir), 'write')?.refused, refused, maxHold)
  }
})

t.test('JSON-RPC calls are counted by the hashes in the log', async t => {
  const dir = t.testdir({
    'calls.yaml': `version: 1
kind: volumetric
rules: [{ id: calls, match: [POST /mcp], key: [json-rpc], quota: { requests: 1, per: 1h }, mode: enforce }]
`,
  })
  const records = ['search', 'search', 'fetch'].map((call, at) =>
    decisionRecord({
      id: `${at}`,
      ts: timeOf(START + at),
      method: 'POST',
      path: '/mcp',
      parts: { 'json-rpc': `hash-of-${call}` },
    }),
  )
  const { candidate, accuracy } = await replay(records.map(lineOf).join(''), '--policies', dir)
  t.match(
    candidate.rules.find(({ rule }) => rule === 'calls'),
    { requests: 3, refused: 1 },
  )
  t.ok(accuracy.some(sentence => /each batch costs what one call does here.*: calls/.test(sentence)))
})

t.test('a request with several records is replayed once, even if it was refused', async t => {
  const denied = decisionRecord({ id: 'a', decision: 'deny', sent_status: 429, ts: timeOf(START) })
  const would = decisionRecord({
    id: 'a',
    decision: 'would_deny',
    mode: 'report-only',
    rule: 'x',
    ts: timeOf(START),
  })
  const unmatched = decisionRecord({
    id: 'b',
    rule: null,
    kind: null,
    route: null,
    key: null,
    src: null,
    ts: timeOf(START),
  })
  const { candidate, recorded } = await replay(
    [denied, would, unmatched].map(lineOf).join(''),
    '--policies',
    CONFIG,
  )
  t.equal(candidate.requests, 2)
  t.same(recorded, { requests: 2, bothAdmit: 1, bothRefuse: 0, onlyThen: 1, onlyNow: 0 })
})

t.test('replay reports what the log does not contain', async t => {
  const accuracyOf = async (stdin: string, ...words: string[]) =>
    (await replay(stdin, '--policies', CANDIDATE, ...words)).accuracy.join('\n')
  t.equal(
    await accuracyOf(RECORDS.map(lineOf).join('')),
    '',
    'records of all requests leave nothing to report',
  )

  const refusals = RECORDS.map(record => lineOf({ ...record, decision: 'deny' })).join('')
  t.match(await accuracyOf(refusals), /holds refusals only, so counters fill up slower/)
  t.match(await accuracyOf(refusals), /held by requests that were refused then: 48\./)
  const sampled = RECORDS.map(record => lineOf({ ...record, sample: 0.01 })).join('')
  t.match(await accuracyOf(sampled), /holds 1 % of the admitted requests/)
  const dropped = `{"rule":"catch-all","dropped":150}\n${RECORDS.map(lineOf).join('')}`
  t.match(await accuracyOf(dropped), /left out 150 records in floods/)
  const hashed = RECORDS.slice(0, 2)
    .map(record => lineOf({ ...record, path: '/~abcdefghijklmnop' }))
    .join('')
  t.match(await accuracyOf(hashed), /These words of the patterns never occur.*: items\./)

  const combined = '192.0.2.1 - - [05/Jan/2026:10:00:00 +0000] "POST /items/1 HTTP/1.1" 200 12 "-" "curl/8"\n'
  const told = await accuracyOf(combined)
  t.match(told, 'The log has no durations, so these in-flight rules refuse nothing here: item-write.')
  t.match(told, 'No line of the log has header:x-tenant, a part of the key of tenant-flood')
  t.match(told, 'does not record the host')
  t.match(told, 'whole seconds')
  t.notMatch(await accuracyOf(combined, '--host', 'acme.localhost'), 'does not record the host')
})

t.test(
  'rules that depend on the response use the statuses of the log, and report what is missing',
  async t => {
    const folder = t.testdir({
      'p.yaml': `version: 1
kind: volumetric
rules:
  - { id: failures, match: [/**], key: [project], reads: true, countWhen: { status: [404] }, quota: { requests: 3, per: 60s } }
  - { id: tokens, match: [/**], key: [project], reads: true, cost: { answerHeader: x-tokens-used }, quota: { requests: 1000, per: 60s } }
  - { id: known, match: [/**], key: [project], when: { authenticated: verified, networks: [203.0.113.7] }, quota: { requests: 3, per: 60s } }
`,
    })
    const failed = Array.from({ length: 5 }, (_, i) => ({
      ...recordOf({ at: i * 100 }, i),
      sent_status: 404,
    }))
    const told = await replay(failed.map(lineOf).join(''), '--policies', folder)
    t.match(told.candidate, { requests: 5, refused: 2 })
    const { accuracy } = told
    t.match(accuracy.join('\n'), 'each request costs 1 here by these rules: tokens.')
    t.match(accuracy.join('\n'), 'smaller networks in the "when" of known')
    const line = '192.0.2.1 - - [05/Jan/2026:10:00:00 +0000] "POST /items/1 HTTP/1.1" 200 12 "-" "curl/8"\n'
    const combined = (await replay(line, '--policies', folder)).accuracy.join('\n')
    t.match(
      combined,
      'does not say whose credentials were verified, so these rules count nothing here: known.',
    )
    const mapped = '{"time":"2026-01-05T10:00:00Z","method":"POST","path":"/items/1"}\n'
    const untold = await replay(
      ...([
        mapped,
        '--policies',
        folder,
        '--map',
        'time=time',
        '--map',
        'method=method',
        '--map',
        'path=path',
      ] as const),
    )
    t.match(
      untold.accuracy.join('\n'),
      /no statuses, so these rules.* count nothing here: failures, tokens\./,
    )
  },
)

t.test('a rule that both policies have is explained by the settings of each', async t => {
  const policy = (more: string) => `version: 1
kind: volumetric
rules:
  - { id: failures, match: [/**], key: [client-ip], reads: true, ${more}quota: { requests: 3, per: 60s } }
`
  const dir = t.testdir({
    now: { 'p.yaml': policy('') },
    next: { 'p.yaml': policy('countWhen: { status: [401] }, enforceFor: 25%, ') },
  })
  const mapped = '{"time":"2026-01-05T10:00:00Z","method":"POST","path":"/items/1"}\n'
  const fields = ['time', 'method', 'path'].flatMap(name => ['--map', `${name}=${name}`])
  const policies = ['--policies', join(dir, 'next'), '--against', join(dir, 'now')]
  const sentence = /no statuses, so these rules.* count nothing here: failures\./
  t.match((await replay(mapped, ...policies, ...fields)).accuracy.join('\n'), sentence)
  const records = RECORDS.map(lineOf).join('')
  t.match((await replay(records, ...policies)).accuracy.join('\n'), /not the same ones: failures\./)
})

t.test('requests decided while Redis was away are reported', async t => {
  const outage = RECORDS.map((record, i) => ({
    ...record,
    ...(i < 3 && { store: 'local' }),
    ...(i === 3 && { decision: 'error_closed', store: 'none' }),
  }))
  const sentence = /^Redis was away, or a rule could not be counted, for 4 requests/
  const { accuracy } = await replay(outage.map(lineOf).join(''), '--policies', CONFIG)
  t.equal(accuracy.filter(one => sentence.test(one)).length, 1)
  const calm = await replay(RECORDS.map(lineOf).join(''), '--policies', CONFIG)
  t.notOk(calm.accuracy.some(one => one.includes('away')))
})

t.test('access logs of nginx, Apache and Envoy are recognised and read', async t => {
  const read = async (stdin: string, ...words: string[]) => {
    const { candidate, input, recorded } = await replay(stdin, '--policies', CONFIG, ...words)
    const { requests, refused, unserved, projects } = candidate
    return {
      formats: input.formats,
      requests,
      refused,
      unserved,
      recorded,
      projects: projects.map(({ project }) => project).sort(),
    }
  }
  const combined = (changes: { client?: string; request?: string; status?: number } = {}) => {
    const { client = '192.0.2.1 - -', request = 'GET /a?b=1 HTTP/1.1', status = 200 } = changes
    return `${client} [05/Jan/2026:10:00:00 +0100] "${request}" ${status} 12 "-" "a \\"b\\" c"\n`
  }
  t.match(await read(Array.from({ length: 7 }, () => combined()).join(''), '--host', 'acme.localhost'), {
    formats: ['combined'],
    requests: 7,
    refused: 2,
    projects: ['acme'],
  })
  const mixed = [
    combined({ client: 'globex.localhost:443 2001:db8::1 - ann' }),
    combined({ request: 'GET /%2e%2e/%2F HTTP/1.1', status: 400 }),
    combined({ request: '\\x16\\x03\\x01', status: 400 }),
    combined({ request: 'OPTIONS * HTTP/1.1' }),
    combined({ status: 429 }),
  ]
  t.same(await read(mixed.join(''), '--host', 'acme.localhost'), {
    formats: ['combined'],
    requests: 5,
    refused: 0,
    unserved: { 'bad-target': 3 },
    recorded: { requests: 5, bothAdmit: 4, bothRefuse: 0, onlyThen: 1, onlyNow: 0 },
    projects: ['acme', 'globex'],
  })

  const envoy = (i: number) =>
    lineOf({
      start_time: timeOf(START + i * 10),
      method: 'POST',
      path: '/items/1?x=1',
      authority: 'acme.localhost',
      downstream_remote_address: '192.0.2.1:4711',
      duration: 5,
      response_code: 200,
      protocol: 'HTTP/2',
    })
  t.match(await read([0, 1, 2, 3, 4, 5].map(envoy).join('')), {
    formats: ['envoy'],
    requests: 6,
    refused: 1,
    projects: ['acme'],
  })

  const own = [0, 1, 2, 3, 4, 5].map(i =>
    lineOf({ ts: START / 1000 + i, req: { verb: 'post', url: '/items/1', tenant: 't' }, ms: 1 }),
  )
  const map = [
    'time=ts',
    'method=req.verb',
    'path=req.url',
    'duration=ms',
    'header:x-tenant=req.tenant',
  ].flatMap(one => ['--map', one])
  const byTenant = await replay(own.join(''), '--policies', CANDIDATE, '--host', 'acme.localhost', ...map)
  t.same(byTenant.input.formats, ['json'])
  t.same(
    byTenant.candidate.rules.map(({ rule }) => rule),
    ['tenant-flood', 'catch-all', 'item-write'],
  )
})

t.test(
  'unknown callers of any log count for whom the candidate says, other projects under their names',
  async t => {
    const ids = ['acme', 'gone', 'host:nobody.example', 'host:other.example', 'client:192.0.2.0/24~hash']
    const records = ids.map((project, i) => recordOf({ at: i, project }, i))
    const projects = (await replay(records.map(lineOf).join(''), '--policies', CONFIG)).candidate.projects
    t.same(projects.map(({ project }) => project).sort(), [
      'acme',
      'client:203.0.113.0/24~clienthash123456',
      'gone',
    ])
  },
)

t.test('unusable input is reported in a sentence, with exit code 2', async t => {
  const dir = t.testdir({ empty: '', 'p.yaml': 'version: 1\nkind: project-limit\n' })
  const say = async (sentence: string | RegExp, ...words: string[]) => {
    const { code, out, err } = await sluice(['replay', ...words])
    t.same([code, out], [2, ''], String(sentence))
    t.match(err, sentence)
  }
  const log = join(dir, 'log')
  writeFileSync(log, RECORDS.map(lineOf).join(''))
  const candidate = ['--policies', CONFIG]
  await say('Name the candidate with --policies DIR.', log)
  await say('There is no folder nowhere.', log, '--policies', 'nowhere')
  await say(/p\.yaml:2:7 kind: .*Did you mean "project-limits"\?/, log, '--policies', dir, '--config', CONFIG)
  await say('is a folder. Name the log files in it.', dir, ...candidate)
  await say(/No request in .*empty: 0 lines read\./, join(dir, 'empty'), ...candidate)
  await say('There is no format "combine". Did you mean combined?', log, ...candidate, '--format', 'combine')
  await say('--map is "x"; write it as field=name', log, ...candidate, '--map', 'x')
  await say('--map knows no field "pth". Did you mean path?', log, ...candidate, '--map', 'pth=x')
  await say('--map must also name method and path.', log, ...candidate, '--map', 'time=x')
  await say('--format json needs --map', log, ...candidate, '--format', 'json')
  await say('--map is for logs in JSON', log, ...candidate, '--format', 'combined', '--map', 'time=x')
})

t.test('the output fits forty columns', async t => {
  const { out } = await sluice(
    ['replay', '-', '--policies', CANDIDATE, '--against', CONFIG, '--config', CONFIG],
    {
      stdin: RECORDS.map(lineOf).join(''),
      columns: 40,
    },
  )
  t.same(
    out.split('\n').filter(line => line.length > 40),
    [],
  )
})
