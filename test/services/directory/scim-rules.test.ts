import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { Directory, Json, JsonObject } from '../../../services/directory/model.js'
import { enterpriseUrn } from '../../../services/directory/scim/attributes.js'
import { type Filter, parseFilter } from '../../../services/directory/scim/filter.js'
import { readGroup } from '../../../services/directory/scim/group.js'
import { matches } from '../../../services/directory/scim/match.js'
import { planMembership } from '../../../services/directory/scim/membership.js'
import { applyPatch } from '../../../services/directory/scim/patch.js'
import { parsePatch } from '../../../services/directory/scim/patch-path.js'
import { userAttributes } from '../../../services/directory/scim/schema.js'
import { narrow, narrowToIds, termsOf } from '../../../services/directory/scim/terms.js'
import { readUser, viewUser } from '../../../services/directory/scim/user.js'
import { versionOf } from '../../../services/directory/scim/version.js'
import { changed, newResource } from '../../../services/directory/sync/resources.js'

/** The action throws an error with these fields. */
function refuses(t: Test, action: () => unknown, fields: object, title = JSON.stringify(fields)): void {
  try {
    action()
    t.fail(`${title}: not refused`)
  } catch (error) {
    t.match(error, fields, title)
  }
}

const ada: JsonObject = {
  id: 'A1',
  externalId: 'Ext-1',
  userName: 'Ada@Example.com',
  name: { givenName: 'Ada', familyName: 'Lovelace' },
  active: true,
  logins: 7,
  emails: [
    { type: 'work', value: 'ada@work.example', primary: true },
    { type: 'home', value: 'ada@home.example' },
  ],
  [enterpriseUrn]: { department: 'Engines' },
  meta: { created: '2026-01-02T03:04:05.000Z', lastModified: '2026-02-02T03:04:05.000Z' },
}

t.test('a filter finds what RFC 7644 says it finds', async t => {
  const table: [string, boolean][] = [
    ['userName eq "ada@EXAMPLE.com"', true],
    ['USERNAME Eq "ada@example.com"', true],
    ['urn:ietf:params:scim:schemas:core:2.0:User:userName sw "ada"', true],
    ['externalId eq "ext-1"', false],
    ['externalId eq "Ext-1"', true],
    ['id eq "a1"', false],
    ['userName ne "bob"', true],
    ['nickName ne "bob"', true],
    ['name.familyName co "love"', true],
    ['name.familyName ew "LACE"', true],
    ['name.familyName gt "Kelvin"', true],
    ['name.familyName lt "Kelvin"', false],
    ['title pr', false],
    ['name pr and emails pr', true],
    ['active eq true', true],
    ['active eq "True"', true],
    ['active eq false', false],
    ['logins ge 7 and logins le 7 and not (logins gt 7)', true],
    ['title eq null', true],
    ['userName ne null', true],
    ['emails eq "ada@home.example"', true],
    ['emails.value co "home"', true],
    ['emails[type eq "work" and value co "home"]', false],
    ['emails[type eq "home" and value co "home"]', true],
    ['emails[type eq "work"].value eq "ADA@work.example"', true],
    ['emails[type eq "work"].value eq "ada@home.example"', false],
    ['emails[type eq "home"].primary pr', false],
    ['userName sw "ada" and emails[type eq "work"].value ew "example" and active eq true', true],
    ['not (emails[type eq "work" or type eq "home"].value co "nobody")', true],
    [`${enterpriseUrn}:department eq "engines"`, true],
    ['meta.lastModified gt "2026-02-01T00:00:00Z"', true],
    ['meta.created eq "2026-01-02T03:04:05Z"', true],
    ['title pr or userName sw "ada" and active eq false', false],
    ['(title pr or userName sw "ada") and active eq true', true],
    ['userName eq "a\\"b"', false],
  ]
  for (const [text, expected] of table) {
    t.equal(matches(ada, parseFilter(text)), expected, text)
  }
})

t.test(
  'a filter that is not understood is refused with its place, and none can exhaust the stack',
  async t => {
    const bad = [
      ...[
        'userName',
        'userName eq',
        'userName eq bob',
        'userName xx "a"',
        'eq "a"',
        '(userName pr',
        'userName pr)',
      ],
      ...[
        'userName eq "a" userName',
        'active gt true',
        'logins co 7',
        'userName eq "\\x"',
        "userName eq 'a'",
      ],
      ...[
        'emails[type eq "a"',
        'emails[type eq "a"].value',
        'emails[type eq "a"].password eq "x"',
        'emails[type eq "a"] .value eq "x"',
        '.value eq "x"',
        'not userName pr',
        '__proto__ pr',
        'a.constructor.b pr',
        'password eq "x"',
        'a..b pr',
        '',
      ],
      ...[`${'('.repeat(60)}a pr${')'.repeat(60)}`, `a eq "${'x'.repeat(5000)}"`, '('.repeat(4000)],
    ]
    for (const text of bad)
      refuses(t, () => parseFilter(text), { status: 400, scimType: 'invalidFilter' }, text.slice(0, 40))
    refuses(t, () => parseFilter('userName eq bob'), {
      message: 'The filter needs a value in quotes at character 13.',
    })
  },
)

const name = fc.constantFrom(
  'userName',
  'displayName',
  'externalId',
  'emails',
  'emails.value',
  'id',
  'active',
  'title',
)
const word = fc.constantFrom('a', 'B', 'b', 'true', '')
const filterText = fc.letrec<{ any: string }>(tie => ({
  any: fc.oneof(
    { maxDepth: 4 },
    fc
      .tuple(name, fc.constantFrom('eq', 'ne', 'co', 'pr'), word)
      .map(([n, op, v]) => (op === 'pr' ? `${n} pr` : `${n} ${op} "${v}"`)),
    fc.tuple(tie('any'), fc.constantFrom('and', 'or'), tie('any')).map(([l, op, r]) => `(${l}) ${op} (${r})`),
    tie('any').map(inner => `not (${inner})`),
    word.map(value => `emails[type eq "work" or value eq "${value}"]`),
    word.map(value => `emails[type eq "work"].value eq "${value}"`),
  ),
})).any
const user = fc.record(
  {
    userName: word,
    displayName: word,
    externalId: word,
    emails: fc.array(fc.record({ value: word, type: fc.constantFrom('work', 'home') }), { maxLength: 2 }),
  },
  { requiredKeys: ['userName'] },
)

t.test('property: lookup terms never hide a resource that the filter finds', async () => {
  fc.assert(
    fc.property(filterText, user, word, (text, raw, id) => {
      const filter: Filter = parseFilter(text)
      if (!matches({ ...raw, id }, filter)) return true
      const terms = narrow(filter)
      const own = termsOf({ raw: raw as JsonObject })
      const ids = narrowToIds(filter)
      return (
        (terms === undefined || terms.some(term => own.includes(term))) &&
        (ids === undefined || ids.includes(id))
      )
    }),
    { numRuns: 2000 },
  )
})

t.test('property: no text makes the filter or path parser do anything but answer or refuse', async () => {
  const piece = fc.constantFrom(
    '(',
    ')',
    '[',
    ']',
    '"',
    '\\',
    ' ',
    'eq',
    'and',
    'not',
    'a',
    '.',
    ':',
    '1',
    '-',
    '$',
    'urn:x:y',
    '\u0000',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), pieces => {
      for (const parse of [
        parseFilter,
        (path: string) => parsePatch({ Operations: [{ op: 'add', path, value: 1 }] }, []),
      ]) {
        try {
          parse(pieces.join(''))
        } catch (error) {
          if ((error as { status?: number }).status !== 400) throw error
        }
      }
    }),
    { numRuns: 2000 },
  )
})

const patched = (raw: JsonObject, ...Operations: Json[]): JsonObject => {
  const extensions = Object.keys(raw).filter(key => key.includes(':'))
  return readUser(applyPatch(raw, parsePatch({ Operations }, extensions), userAttributes))
}
const base = readUser({
  userName: 'ada',
  name: { givenName: 'Ada' },
  emails: [{ type: 'work', value: 'w', primary: true }],
})

t.test('PATCH understands what identity providers send', async t => {
  const table: [string, Json[], object][] = [
    ['Okta deactivates', [{ op: 'replace', value: { active: false } }], { active: false }],
    ['Entra deactivates', [{ op: 'Replace', path: 'active', value: 'False' }], { active: false }],
    ['lower-case path', [{ op: 'replace', path: 'username', value: 'eve' }], { userName: 'eve' }],
    [
      'sub-attribute',
      [{ op: 'Add', path: 'name.familyName', value: 'L' }],
      { name: { givenName: 'Ada', familyName: 'L' } },
    ],
    ['dotted key', [{ op: 'replace', value: { 'name.givenName': 'E' } }], { name: { givenName: 'E' } }],
    [
      'complex merges',
      [{ op: 'replace', value: { name: { familyName: 'L' } } }],
      { name: { givenName: 'Ada', familyName: 'L' } },
    ],
    [
      'value path',
      [{ op: 'replace', path: 'emails[type eq "work"].value', value: 'n' }],
      { emails: [{ type: 'work', value: 'n', primary: true }] },
    ],
    [
      'missing element is made',
      [{ op: 'Add', path: 'emails[type eq "home"].value', value: 'h' }],
      {
        emails: [
          { type: 'work', value: 'w', primary: true },
          { type: 'home', value: 'h' },
        ],
      },
    ],
    [
      'a new primary takes over',
      [{ op: 'add', path: 'emails', value: [{ value: 'h', primary: true }] }],
      {
        emails: [
          { type: 'work', value: 'w', primary: false },
          { value: 'h', primary: true },
        ],
      },
    ],
    [
      'equal value is not added twice',
      [{ op: 'add', path: 'emails', value: { type: 'work', value: 'w', primary: true } }],
      {},
    ],
    ['remove by filter', [{ op: 'remove', path: 'emails[type eq "work"]' }], { emails: undefined }],
    [
      'remove by value list',
      [{ op: 'Remove', path: 'emails', value: [{ value: 'w' }] }],
      { emails: undefined },
    ],
    [
      'an element without its value is gone',
      [
        { op: 'add', path: 'emails', value: [{ type: 'home', value: 'h', primary: false }] },
        { op: 'remove', path: 'emails[type eq "home"].value' },
      ],
      {},
    ],
    [
      'the same without a filter',
      [
        { op: 'add', path: 'ims', value: [{ value: 'i' }, { value: 'j', type: 'x' }] },
        { op: 'remove', path: 'ims.value' },
      ],
      {},
    ],
    [
      'what still says something stays',
      [
        { op: 'add', path: 'addresses', value: [{ type: 'work', locality: 'L', country: 'C' }] },
        { op: 'remove', path: 'addresses[type eq "work"].country' },
      ],
      { addresses: [{ type: 'work', locality: 'L' }] },
    ],
    [
      'one value for several elements is theirs apart',
      [
        { op: 'add', path: 'ims', value: [{ value: 'i' }, { value: 'j' }] },
        { op: 'add', path: 'ims[value pr].more', value: { n: 1 } },
        { op: 'replace', path: 'ims[value eq "i"].more.n', value: 2 },
      ],
      {
        ims: [
          { value: 'i', more: { n: 2 } },
          { value: 'j', more: { n: 1 } },
        ],
      },
    ],
    [
      'lists of one, as older jobs of Entra ID send them',
      [
        { op: 'Add', path: 'displayName', value: [{ $ref: null, value: 'D' }] },
        { op: 'Replace', path: 'active', value: ['False'] },
        { op: 'Replace', path: 'name.givenName', value: [{ $ref: null, value: 'G' }] },
        { op: 'Add', path: `${enterpriseUrn}:manager`, value: [{ $ref: null, value: 'm' }] },
      ],
      {
        displayName: 'D',
        active: false,
        name: { givenName: 'G' },
        [enterpriseUrn]: { manager: { value: 'm' } },
      },
    ],
    [
      'remove what is not there',
      [
        { op: 'remove', path: 'title' },
        { op: 'remove', path: 'emails[type eq "x"]' },
      ],
      {},
    ],
    ['null removes', [{ op: 'replace', path: 'name.givenName', value: null }], { name: undefined }],
    [
      'extension by path',
      [{ op: 'add', path: `${enterpriseUrn}:department`, value: 'D' }],
      { [enterpriseUrn]: { department: 'D' } },
    ],
    [
      'extension by key',
      [{ op: 'add', value: { [`${enterpriseUrn}:department`]: 'D' } }],
      { [enterpriseUrn]: { department: 'D' } },
    ],
    [
      'extension object',
      [{ op: 'add', value: { [enterpriseUrn]: { department: 'D' } } }],
      { [enterpriseUrn]: { department: 'D' } },
    ],
    [
      'manager as text',
      [{ op: 'Add', path: `${enterpriseUrn}:manager`, value: 'm' }],
      { [enterpriseUrn]: { manager: { value: 'm' } } },
    ],
    ['unknown extension', [{ op: 'add', value: { 'urn:x:1.0:Y': { z: 1 } } }], { 'urn:x:1.0:Y': { z: 1 } }],
    ['unknown attribute', [{ op: 'add', path: 'shoeSize', value: 42 }], { shoeSize: 42 }],
    [
      'id is passed over in an object',
      [{ op: 'replace', value: { id: 'x', meta: {}, title: 'T' } }],
      { title: 'T' },
    ],
    [
      'passwords are dropped',
      [
        { op: 'add', path: 'password', value: 'p' },
        { op: 'add', value: { Password: 'p', x: { password: 'p', y: 1 } } },
      ],
      { x: { y: 1 } },
    ],
  ]
  for (const [title, operations, difference] of table) {
    const expected = Object.entries({ ...base, ...difference }).filter(([, value]) => value !== undefined)
    t.same(patched(base, ...operations), Object.fromEntries(expected), title)
  }
})

t.test('PATCH refuses what it cannot do, in the words of the RFC', async t => {
  const table: [Json, string][] = [
    [{ op: 'remove' }, 'noTarget'],
    [{ op: 'replace', path: 'emails[type sw "x"].value', value: 'v' }, 'noTarget'],
    [{ op: 'replace', path: 'id', value: 'x' }, 'mutability'],
    [{ op: 'add', path: 'meta.created', value: 'x' }, 'mutability'],
    [{ op: 'move', path: 'title' }, 'invalidSyntax'],
    [{ op: 'add', path: 'title' }, 'invalidValue'],
    [{ op: 'add', value: 'x' }, 'invalidValue'],
    [{ op: 'replace', path: 'active', value: 'maybe' }, 'invalidValue'],
    [{ op: 'replace', path: 'userName', value: 7 }, 'invalidValue'],
    [{ op: 'remove', path: 'userName' }, 'invalidValue'],
    [{ op: 'add', path: 'emails[type eq "x"', value: 1 }, 'invalidPath'],
    [{ op: 'add', path: 'emails[type zz "x"]', value: 1 }, 'invalidFilter'],
    [{ op: 'add', path: 'userName.x', value: 1 }, 'invalidPath'],
    [{ op: 'replace', path: 'displayName', value: ['a', 'b'] }, 'invalidValue'],
    [{ op: 'replace', path: 'name', value: 'Ada' }, 'invalidValue'],
    [{ op: 'add', path: enterpriseUrn, value: 'Engines' }, 'invalidValue'],
    [{ op: 'add', path: 'addresses', value: 'Here' }, 'invalidValue'],
    [{ op: 'add', path: `emails[type eq "work"].${'a.'.repeat(3000)}a`, value: 'x' }, 'invalidPath'],
    [{ op: 'add', path: `${'a.'.repeat(3000)}a`, value: 'x' }, 'invalidPath'],
    [{ op: 'add', path: '__proto__.polluted', value: 1 }, 'invalidPath'],
    [{ op: 'add', value: { 'constructor.prototype.polluted': 1 } }, 'invalidPath'],
    [{ op: 'add', path: 'emails[type eq "x"].__proto__', value: 1 }, 'invalidPath'],
    [JSON.parse('{"op":"add","value":{"__proto__":{"polluted":1}}}'), 'invalidPath'],
    [
      JSON.parse('{"op":"add","path":"name","value":{"constructor":{"prototype":{"polluted":1}}}}'),
      'invalidPath',
    ],
  ]
  for (const [operation, scimType] of table) {
    refuses(
      t,
      () => patched(base, { op: 'replace', path: 'title', value: 'T' }, operation),
      { status: 400, scimType },
      JSON.stringify(operation).slice(0, 80),
    )
  }
  t.equal(({} as { polluted?: number }).polluted, undefined)
  t.notOk('title' in base, 'the operation before the failing one left nothing behind')
})

const numbered = (count: number, prefix = 'k'): string[] =>
  Array.from({ length: count }, (_, n) => `${prefix}${n}`)
const keyed = (count: number): JsonObject => Object.fromEntries(numbered(count).map(key => [key, 1]))
const many = (count: number, prefix?: string): Json[] => numbered(count, prefix).map(value => ({ value }))

t.test('a resource has limits, whether it is sent whole or grown by PATCH', async t => {
  const grow = (...operations: Json[]) => patched(base, ...operations)
  const whole = (more: JsonObject) => readUser({ userName: 'u', ...more })
  const invalid = { status: 400, scimType: 'invalidValue' }
  const table: [string, () => unknown, object][] = [
    ['1001 values', () => whole({ emails: many(1001) }), invalid],
    ['501 attributes', () => whole({ x: keyed(501) }), invalid],
    ['64 KiB', () => whole({ x: 'x'.repeat(64 * 1024) }), { status: 413, message: /65536 bytes/ }],
    ['64 KiB escaped', () => whole({ x: '\u0000'.repeat(11 * 1024) }), { status: 413 }],
    [
      '1000 + 1 values',
      () =>
        grow(
          { op: 'replace', path: 'roles', value: many(1000) },
          { op: 'add', path: 'roles', value: many(1, 'x') },
        ),
      invalid,
    ],
    [
      '14000 keys',
      () => grow({ op: 'add', value: keyed(14_000) }),
      { ...invalid, message: /More than 1000 operations/ },
    ],
    ['14000 keys in name', () => grow({ op: 'add', path: 'name', value: keyed(14_000) }), invalid],
    [
      'two halves',
      () => grow(...['a', 'b'].map(path => ({ op: 'add', path, value: 'x'.repeat(40_000) }))),
      { status: 413 },
    ],
  ]
  for (const [title, action, refusal] of table) refuses(t, action, refusal, title)
  t.equal(Object.keys(grow({ op: 'add', value: keyed(480) })).length, 480 + Object.keys(base).length)
  t.match(grow({ op: 'add', path: 'roles', value: many(1000) }), { roles: { length: 1000 } })
  t.match(readGroup({ displayName: 'g', members: many(9000) }).members, { length: 9000 })
})

t.test('no PATCH of 1 MiB costs more than a moment', async t => {
  const roles = readUser({ userName: 'u', roles: many(1000, 'r'), name: keyed(400) })
  const wide = `roles[${numbered(80, 'x').join(' pr or ')} pr or value pr].type`
  const table: [string, Json[]][] = [
    ['values that are all new', [{ op: 'add', path: 'roles', value: many(40_000) }]],
    [
      'one list many times',
      Array.from({ length: 999 }, () => ({ op: 'add', path: 'roles', value: many(20) })),
    ],
    ['wide filters', Array.from({ length: 999 }, () => ({ op: 'replace', path: wide, value: 'w' }))],
    [
      'every element',
      Array.from({ length: 999 }, () => ({ op: 'replace', path: 'roles[value pr].type', value: 'w' })),
    ],
    [
      'every element by a dotted path',
      Array.from({ length: 999 }, () => ({ op: 'replace', path: 'roles.type', value: 'w' })),
    ],
    [
      'other letter case',
      Array.from({ length: 999 }, () => ({
        op: 'replace',
        path: 'name',
        value: Object.fromEntries(numbered(100, 'K').map(k => [k, 2])),
      })),
    ],
    ['removals', Array.from({ length: 999 }, () => ({ op: 'remove', path: 'roles', value: many(40, 'z') }))],
    [
      'growing by itself',
      ['a', 'a.b', 'a.b.c', 'a.b.c.d'].map(path => ({ op: 'add', path, value: many(90) })),
    ],
  ]
  for (const [title, operations] of table) {
    const before = performance.now()
    refuses(t, () => patched(roles, ...operations), { status: Number }, title)
    const took = performance.now() - before
    t.ok(took < 2000, `${title}: ${Math.round(took)} ms`)
  }
})

t.test('each of many changes within one millisecond is a version of its own', async t => {
  const now = '2026-01-01T00:00:00.000Z'
  const identity = { id: 'd', tenant: 't', product: 'p' } as Directory
  const versions = new Set<string>()
  let user = newResource(identity, 'user', { userName: 'u' }, now)
  for (let n = 0; n < 5; n++) {
    versions.add(versionOf(user))
    user = changed(user, { userName: `u${n}` }, n === 3 ? '2025-12-31T23:59:59.000Z' : now)
  }
  t.equal(versions.size, 5, 'also when the clock goes back')
})

t.test('member steps fold into one plan', async t => {
  const plan = (...Operations: Json[]) => {
    const { reset, add, remove } = planMembership(parsePatch({ Operations }, []))
    return { reset, add: [...add], remove: [...remove] }
  }
  const member = (value: string) => ({ value })
  t.same(plan({ op: 'Add', path: 'members', value: [member('a'), member('b')] }), {
    reset: false,
    add: ['a', 'b'],
    remove: [],
  })
  t.same(plan({ op: 'Remove', path: 'members', value: [{ $ref: null, value: 'a' }] }), {
    reset: false,
    add: [],
    remove: ['a'],
  })
  t.same(plan({ op: 'remove', path: 'members[value eq "a"]' }), { reset: false, add: [], remove: ['a'] })
  t.same(plan({ op: 'remove', path: 'members' }), { reset: true, add: [], remove: [] })
  t.same(
    plan({ op: 'remove', path: 'members', value: [] }),
    { reset: false, add: [], remove: [] },
    'naming nobody removes nobody',
  )
  t.same(plan({ op: 'remove', path: 'members', value: null }), { reset: false, add: [], remove: [] })
  t.same(plan({ op: 'replace', path: 'members', value: [member('c')] }), {
    reset: true,
    add: ['c'],
    remove: [],
  })
  t.same(plan({ op: 'replace', value: { members: [] } }), { reset: true, add: [], remove: [] })
  t.same(
    plan(
      { op: 'remove', path: 'members[value eq "a"]' },
      { op: 'add', value: { members: [member('a')] } },
      { op: 'add', path: 'members', value: 'b' },
    ),
    { reset: false, add: ['a', 'b'], remove: [] },
  )
  for (const [op, path, value] of [
    ['add', 'members', [{}]],
    ['remove', 'members[display eq "x"]', undefined],
    ['replace', 'members[value eq "a"].display', 'x'],
  ]) {
    refuses(t, () => plan({ op, path, value } as Json), { status: 400 }, String(path))
  }
  refuses(
    t,
    () =>
      plan({ op: 'add', path: 'members', value: Array.from({ length: 10_001 }, (_, n) => member(`m${n}`)) }),
    { status: 400 },
  )
})

t.test('a user is checked, and names and address are derived from what was sent', async t => {
  t.equal(viewUser({ id: 'x', raw: readUser({ userName: 'u' }) }).email, 'u')
  const emails = [{ value: 'first' }, { value: 'work', type: 'Work' }, { value: 'main', primary: 'True' }]
  t.equal(viewUser({ id: 'x', raw: readUser({ userName: 'u', emails }) }).email, 'main')
  t.equal(viewUser({ id: 'x', raw: readUser({ userName: 'u', emails: emails.slice(0, 2) }) }).email, 'work')
  t.equal(viewUser({ id: 'x', raw: readUser({ userName: 'u', emails: emails.slice(0, 1) }) }).email, 'first')
  t.match(readUser({ USERNAME: 'u', Name: { GIVENNAME: 'g' }, title: null }), {
    userName: 'u',
    name: { givenName: 'g' },
    active: true,
  })
  const deep = JSON.parse(`${'{"a":'.repeat(40)}1${'}'.repeat(40)}`)
  const bad: unknown[] = [
    null,
    [],
    'x',
    {},
    { userName: ' ' },
    { userName: 1 },
    { userName: 'u', username: 'v' },
    { userName: 'x'.repeat(2000) },
    { userName: 'half \ud83d of it' },
  ]
  bad.push(
    { userName: 'u', active: 'yes' },
    { userName: 'u', emails: [1] },
    { userName: 'u', name: 7 },
    { userName: 'u', name: 'Ada' },
    { userName: 'u', addresses: ['Here'] },
    { userName: 'u', displayName: ['D'] },
    { userName: 'u', deep },
  )
  for (const body of bad)
    refuses(t, () => readUser(body), { status: 400 }, JSON.stringify(body)?.slice(0, 50))
})
