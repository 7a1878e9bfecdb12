import fc from 'fast-check'
import t from 'tap'
import type { RuleEntry } from '../../../config/schema/policy.js'
import { normalizePath } from '../../../gateway/listen/path.js'
import { parsePattern } from '../../../gateway/policy/pattern.js'
import { PathTrie } from '../../../gateway/policy/trie.js'
import type { Facts, Project } from '../../../gateway/types.js'
import { matchList } from '../../helpers/lists.js'
import { compiled, projectEntry, projectLimits, ruleFile } from './documents.js'

const growth: Project = { id: 'acme', plan: 'growth', environment: 'production' }

function facts(method: string, path: string, headers: Record<string, string> = {}): Facts {
  return {
    id: 'request',
    method,
    path,
    query: '',
    host: 'acme.localhost',
    client: '192.0.2.1',
    network: '192.0.2.1',
    trusted: false,
    authenticated: false,
    header: name => headers[name],
  }
}

const quota = (burst: number, sustained: number) =>
  ({ burst, sustained, algorithm: 'sliding-window', lease: false }) as const

const limits = projectLimits('project-limits.yaml', {
  buckets: {
    'identities-list': ['GET /admin/identities'],
    identity: ['/admin/identities/{id}'],
    self: ['/admin/identities/self', 'DELETE /admin/identities/{id}'],
    admin: ['/admin/**'],
    'one-deep': ['/admin/*'],
    scim: ['/scim/**'],
    'catch-all': ['*'],
  },
  limits: [
    {
      for: [{ plans: ['growth', 'scale'], environments: ['production'] }],
      quotas: Object.fromEntries(
        ['identities-list', 'identity', 'self', 'admin', 'one-deep', 'scim', 'catch-all'].map(name => [
          name,
          quota(10, 300),
        ]),
      ),
    },
    {
      for: [{ environments: ['development', 'staging'] }, { plans: ['developer'] }],
      quotas: { 'catch-all': quota(5, 150), admin: quota(1, 10) },
    },
  ],
})

t.test('a request falls into the most specific bucket, and only that', async t => {
  const { policy, faults } = compiled([limits])
  t.strictSame(faults, [])
  const cases: [method: string, path: string, bucket: string][] = [
    ['GET', '/admin/identities', 'identities-list'],
    ['HEAD', '/admin/identities', 'identities-list'],
    ['POST', '/admin/identities', 'one-deep'],
    ['GET', '/admin/identities/', 'identities-list'],
    ['GET', '/admin/identities/7', 'identity'],
    ['DELETE', '/admin/identities/7', 'self'],
    ['GET', '/admin/identities/self', 'self'],
    ['GET', '/admin/identities/7/sessions', 'admin'],
    ['GET', '/admin', 'admin'],
    ['GET', '/Admin', 'catch-all'],
    ['GET', '/scim', 'scim'],
    ['GET', '/scim/v2/Users', 'scim'],
    ['GET', '/scimitar', 'catch-all'],
    ['GET', '/', 'catch-all'],
  ]
  for (const [method, path, bucket] of cases) {
    const matched = policy.match(facts(method, path), growth)
    t.strictSame(
      matched.map(({ rule }) => rule.id),
      [bucket],
      `${method} ${path}`,
    )
  }
})

t.test(
  'a bucket without a quota for a plan leaves its requests to the next less specific bucket',
  async t => {
    const { policy } = compiled([limits])
    const staging: Project = { id: 'acme', plan: 'enterprise', environment: 'staging' }
    const developer: Project = { id: 'acme', plan: 'developer', environment: 'production' }
    for (const project of [staging, developer]) {
      t.equal(policy.match(facts('GET', '/admin/identities'), project)[0]?.rule.id, 'admin')
      t.equal(policy.match(facts('GET', '/scim/v2'), project)[0]?.rule.id, 'catch-all')
    }
    t.strictSame(
      policy.match(facts('GET', '/'), { ...growth, plan: 'enterprise' }),
      [],
      'a plan without quotas has no limits',
    )
  },
)

t.test('report-only buckets form a table of their own', async t => {
  const buckets = { 'self-watched': ['/admin/identities/self'], 'new-watched': ['/new'] }
  const quotas = { 'self-watched': quota(1, 1), 'new-watched': quota(1, 1) }
  const rows = [{ for: [{ plans: ['growth'] }], quotas }]
  const watched = (declared: Record<string, string[]>) =>
    projectLimits('watched.yaml', { mode: 'report-only', buckets: declared, limits: rows })
  const both = compiled([limits, watched(buckets)])
  t.strictSame(both.faults, [], 'a pattern may stand in each table')
  const bucketsOf = (path: string) =>
    both.policy.match(facts('GET', path), growth).map(({ rule }) => `${rule.mode} ${rule.id}`)
  t.strictSame(bucketsOf('/admin/identities/self'), ['enforce self', 'report-only self-watched'])
  t.strictSame(bucketsOf('/new'), ['enforce catch-all', 'report-only new-watched'])
  t.strictSame(bucketsOf('/admin'), ['enforce admin'])
  const tied = compiled([limits, watched({ ...buckets, again: ['/new'] })])
  matchList(t, tied.faults, [
    { file: 'watched.yaml', path: ['buckets', 'again', 0], message: /ties with "\/new"/ },
  ])
})

t.test('a CORS preflight falls into the same bucket as any other OPTIONS', async t => {
  const { policy } = compiled([limits])
  const ids = (preflight: boolean) =>
    policy.match({ ...facts('OPTIONS', '/admin'), preflight }, growth).map(({ rule }) => rule.id)
  t.strictSame(ids(true), ids(false))
  t.equal(ids(true).length, 1)
})

t.test('a project’s overrides change its quotas, and may add a bucket', async t => {
  const overrides = { 'catch-all': { burst: 600 }, scim: { burst: 1, sustained: 2 } }
  const developer = { id: 'dev', plan: 'developer', environment: 'development', overrides } as const
  const { policy, faults } = compiled([limits], { projects: [projectEntry(developer)] })
  t.strictSame(faults, [])
  t.match(policy.match(facts('GET', '/x'), developer)[0]?.rule.config, { burst: 600, sustained: 150 })
  t.match(policy.match(facts('GET', '/scim/Users'), developer)[0]?.rule.config, { burst: 1, sustained: 2 })
  const other: Project = { ...developer, id: 'other' }
  t.match(policy.match(facts('GET', '/x'), other)[0]?.rule.config, { burst: 5, sustained: 150 })
})

t.test('an override of a bucket without a quota must give a window', async t => {
  const developer = {
    id: 'dev',
    plan: 'developer',
    environment: 'development',
    overrides: { scim: { lease: true } },
  } as const
  const { faults } = compiled([limits], { projects: [projectEntry(developer)] })
  t.strictSame(faults, [
    {
      file: 'projects.yaml',
      path: ['projects', 0, 'overrides', 'scim'],
      message:
        'Bucket "scim" has no quota for developer/development, so an override must give a window: burst, sustained or windows.',
    },
  ])
})

t.test('a tie between two buckets is a fault, even when parameter names differ', async t => {
  const buckets = { a: ['GET /x/{id}'], b: ['GET /x/{name}', '/x/{id}'], c: ['*'], d: ['/**'] }
  const { faults } = compiled([projectLimits('project-limits.yaml', { buckets, limits: [] })])
  t.strictSame(
    faults.map(({ path }) => path.join('.')),
    ['buckets.b.0', 'buckets.d.0'],
  )
  t.match(faults[0]?.message, /ties with "GET \/x\/\{id\}" of bucket "a"/)
})

t.test('every matching endpoint rule applies, except to GET, HEAD and OPTIONS', async t => {
  const rule: Pick<RuleEntry, 'mode' | 'key' | 'missing'> = {
    mode: 'enforce',
    key: ['project', 'full-path'],
    missing: 'skip',
  }
  const { policy, faults } = compiled([
    ruleFile('in-flight.yaml', 'in-flight', [
      { ...rule, id: 'write', match: ['PATCH /admin/identities/{id}', '/admin/**'] },
      { ...rule, id: 'watch', match: ['PATCH /admin/identities/{id}'] },
    ]),
  ])
  t.strictSame(faults, [])
  const ids = (method: string, path: string) =>
    policy.match(facts(method, path), growth).map(({ rule }) => rule.id)
  t.strictSame(ids('PATCH', '/admin/identities/7'), ['write', 'watch'], 'each rule applies once')
  t.strictSame(ids('PATCH', '/admin/x'), ['write'])
  for (const method of ['GET', 'HEAD', 'OPTIONS']) t.strictSame(ids(method, '/admin/identities/7'), [])
})

t.test('a pattern that can never match is refused with a sentence', async t => {
  const wrong: [string, RegExp][] = [
    ['admin', /must begin with "\/"/],
    ['get /x', /"get" is not a method/],
    ['/a//b', /empty segment/],
    ['/a/', /empty segment/],
    ['/a/../b', /can never match: request paths are resolved first/],
    ['/a/**/b', /only stand at the end/],
    ['/a/b*', /must be plain text, "\{name\}"/],
    ['/a/%61', /unescaped first/],
    ['/a/%zz', /must be plain text/],
    ['/a b', /"\/a" is not a method/],
    ['/a/%2F', /never match: requests with an escaped slash/],
    ['/a/x%5cy', /never match: requests with an escaped slash/],
    ['/a/x%02', /never match: .* control character/],
    ['/a/%7F', /never match: .* control character/],
    ['/a/%C2%85', /never match: .* control character/],
    ['/a/%c3%a4', /never match: the escapes of request paths are in capitals/],
    ['/a/%C3', /never match: requests whose escapes are not UTF-8/],
    ['/a?b=1', /never match: a path ends before its query/],
    ['/a#b', /never match: a path ends before its query/],
    ['PSOT /a', /never match: no request is served with PSOT/],
    ['TRACE /a', /never match: no request is served with TRACE/],
  ]
  for (const [text, sentence] of wrong) {
    t.throws(() => parsePattern(text), sentence, text)
  }
})

t.test('a request path can hold any literal that a pattern accepts', async () => {
  const piece = fc.constantFrom(
    ..."aZ09-._~!$&'()+,;=:@%/?#\\ {}äCE2F5".split(''),
    '%2F',
    '%C3%A4',
    '%21',
    '%7E',
    '%02',
    '%7F',
    '%C2%85',
  )
  const text = fc.array(piece, { minLength: 1, maxLength: 8 }).map(all => all.join(''))
  fc.assert(
    fc.property(text, written => {
      const literals = literalsOf(`/${written}`)
      fc.pre(literals.length > 0)
      return normalizePath(`/${written}`) === `/${literals.join('/')}`
    }),
    { numRuns: 300 },
  )
})

t.test('a pattern can spell any request path, with %2A for an asterisk', async () => {
  const character = fc.oneof(
    fc.constantFrom(...'aZ09-._~!$&()*+,;=:@/{}%"'),
    fc.constantFrom('%3B', 'é', ' '),
  )
  const path = fc.array(character, { maxLength: 8 }).map(all => `/${all.map(encode).join('')}`)
  fc.assert(
    fc.property(path, raw => {
      const normal = normalizePath(raw)
      const pattern = parsePattern(normal.replaceAll('*', '%2A').replace(/(?<=.)\/$/, ''))
      const trie = new PathTrie<true>()
      trie.add(pattern, true)
      return (
        pattern.segments.every(({ kind }) => kind === 'literal') && trie.find('GET', normal) !== undefined
      )
    }),
    { numRuns: 500 },
  )
})

const encode = (character: string): string =>
  /^(?:[!-~]|%3B)$/.test(character) && character !== '%' ? character : encodeURIComponent(character)

t.test('escapes in a pattern that paths do not need are read as the plain characters', async t => {
  t.strictSame(literalsOf('/%21%24%26%27%28%29%2B%2C%3A%3D%40'), ["!$&'()+,:=@"])
  const trie = new PathTrie<string>()
  for (const text of ['/a@b', '/%2A', '/*', '/a;b', '/a%3Bb']) {
    t.equal(trie.add(parsePattern(text), text), undefined, text)
  }
  t.match(trie.add(parsePattern('/a%40b'), ''), { route: '/a@b' }, 'both spellings are one pattern')
  for (const [path, route] of [
    ['/*', '/%2A'],
    ['/x', '/*'],
    ['/a;b', '/a;b'],
    ['/a%3Bb', '/a%3Bb'],
  ] as const) {
    t.equal(trie.find('GET', path)?.value, route, path)
  }
})

/** The pattern's segments when all of them are plain text. */
function literalsOf(text: string): string[] {
  try {
    const { segments } = parsePattern(text)
    const literals = segments.flatMap(segment => (segment.kind === 'literal' ? segment.text : []))
    return literals.length === segments.length ? literals : []
  } catch {
    return []
  }
}

t.test('the most specific pattern is found, in whatever order patterns were added', async t => {
  const segment = fc.constantFrom('a', 'b', '{x}', '*')
  const pattern = fc
    .record({
      method: fc.constantFrom('', 'GET', 'POST'),
      parts: fc.array(segment, { maxLength: 4 }),
      rest: fc.boolean(),
    })
    .map(({ method, parts, rest }) => ({ method, parts: rest ? [...parts, '**'] : parts }))
  type Written = { method: string; parts: string[] }
  const textOf = ({ method, parts }: Written) => `${method}${method && ' '}/${parts.join('/')}`
  const matches = ({ method, parts }: Written, path: readonly string[]): boolean => {
    if (method !== '' && method !== 'GET') return false
    const fixed = parts.filter(part => part !== '**')
    const lengthFits =
      parts.length > fixed.length ? path.length >= fixed.length : path.length === fixed.length
    return lengthFits && fixed.every((part, i) => part === '{x}' || part === '*' || part === path[i])
  }
  // A pattern that ends is more specific than one that has a `**` there.
  const rank = (part: string | undefined) => (part === undefined ? -1 : ['{x}', '*', '**'].indexOf(part) + 1)
  const moreSpecific = (one: Written, other: Written): number => {
    for (let i = 0; i < Math.max(one.parts.length, other.parts.length); i++) {
      const difference = rank(one.parts[i]) - rank(other.parts[i])
      if (difference !== 0) return difference
    }
    return Number(one.method === '') - Number(other.method === '')
  }
  fc.assert(
    fc.property(
      fc.uniqueArray(pattern, { minLength: 1, maxLength: 12, selector: textOf }),
      fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 5 }),
      (patterns, path) => {
        const trie = new PathTrie<string>()
        for (const written of patterns) trie.add(parsePattern(textOf(written)), textOf(written))
        const best = patterns.filter(written => matches(written, path)).sort(moreSpecific)[0]
        return trie.find('GET', `/${path.join('/')}`)?.value === (best && textOf(best))
      },
    ),
    { numRuns: 2000 },
  )
  t.pass('2000 random policies and paths')
})

t.test('when letter case is folded, patterns match as if all were in lower case', async t => {
  const trie = new PathTrie<string>()
  for (const text of ['/Admin/X', '/admin/{id}', '/ADMIN/x', 'POST /Admin/**', '/caf%C3%A9']) {
    trie.add(parsePattern(text), text)
  }
  const folded = (method: string, path: string) => ({ method, path, foldedPath: path.toLowerCase() })
  const find = (method: string, path: string) => trie.findFor(folded(method, path))?.route
  t.equal(find('GET', '/aDMIN/x'), '/Admin/X', 'of two patterns that fold alike the first is found')
  t.equal(find('GET', '/ADMIN/7'), '/admin/{id}')
  t.equal(find('POST', '/ADMIN/7/8'), 'POST /Admin/**')
  t.equal(find('GET', '/CAF%C3%A9'), '/caf%C3%A9')
  t.strictSame(
    trie.findAllFor(folded('POST', '/admin/X')).map(({ route }) => route),
    ['/Admin/X', '/ADMIN/x', '/admin/{id}', 'POST /Admin/**'],
    'every matching rule applies',
  )
  t.equal(
    trie.findFor({ method: 'GET', path: '/aDMIN/x' }),
    undefined,
    'without folding the pattern does not match',
  )
})
