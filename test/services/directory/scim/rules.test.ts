import t from 'tap'
import type { Directory, JsonObject, JsonValue } from '../../../../services/directory/model.js'
import { readGroup } from '../../../../services/directory/scim/group.js'
import { planMembership } from '../../../../services/directory/scim/membership.js'
import { parsePatch } from '../../../../services/directory/scim/patch-path.js'
import { readUser, viewUser } from '../../../../services/directory/scim/user.js'
import { versionOf } from '../../../../services/directory/scim/version.js'
import { changed, newResource } from '../../../../services/directory/sync/resources.js'
import { cpuMs } from '../../../helpers/cpu-time.js'
import { base, patched, refuses } from './tools.js'

const numbered = (count: number, prefix = 'k'): string[] =>
  Array.from({ length: count }, (_, n) => `${prefix}${n}`)
const keyed = (count: number): JsonObject => Object.fromEntries(numbered(count).map(key => [key, 1]))
const many = (count: number, prefix?: string): JsonValue[] =>
  numbered(count, prefix).map(value => ({ value }))

t.test('the size of a resource is limited, whether it is sent whole or grown by PATCH', async t => {
  const grow = (...operations: JsonValue[]) => patched(base, ...operations)
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
      'two values that are too large together',
      () => grow(...['a', 'b'].map(path => ({ op: 'add', path, value: 'x'.repeat(40_000) }))),
      { status: 413 },
    ],
  ]
  for (const [title, action, refusal] of table) refuses(t, action, refusal, title)
  t.equal(Object.keys(grow({ op: 'add', value: keyed(480) })).length, 480 + Object.keys(base).length)
  t.match(grow({ op: 'add', path: 'roles', value: many(1000) }), { roles: { length: 1000 } })
  t.match(readGroup({ displayName: 'g', members: many(9000) }).members, { length: 9000 })
})

t.test('a PATCH of up to 1 MiB takes bounded time', async t => {
  const roles = readUser({ userName: 'u', roles: many(1000, 'r'), name: keyed(400) })
  const wide = `roles[${numbered(80, 'x').join(' pr or ')} pr or value pr].type`
  const table: [string, JsonValue[]][] = [
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
      'keys in another letter case',
      Array.from({ length: 999 }, () => ({
        op: 'replace',
        path: 'name',
        value: Object.fromEntries(numbered(100, 'K').map(k => [k, 2])),
      })),
    ],
    ['removals', Array.from({ length: 999 }, () => ({ op: 'remove', path: 'roles', value: many(40, 'z') }))],
    [
      'lists added inside lists',
      ['a', 'a.b', 'a.b.c', 'a.b.c.d'].map(path => ({ op: 'add', path, value: many(90) })),
    ],
  ]
  for (const [title, operations] of table) {
    const took = await cpuMs(() => refuses(t, () => patched(roles, ...operations), { status: Number }, title))
    t.ok(took < 2000, `${title}: ${Math.round(took)} ms`)
  }
})

t.test('each of several changes within one millisecond gets a version of its own', async t => {
  const now = '2026-01-01T00:00:00.000Z'
  const identity = { id: 'd', tenant: 't', product: 'p' } as Directory
  const versions = new Set<string>()
  let user = newResource(identity, 'user', { userName: 'u' }, now)
  for (let n = 0; n < 5; n++) {
    versions.add(versionOf(user))
    user = changed(user, { userName: `u${n}` }, n === 3 ? '2025-12-31T23:59:59.000Z' : now)
  }
  t.equal(versions.size, 5, 'the versions differ even when the clock goes back')
})

t.test('the member operations of a PATCH are combined into one plan', async t => {
  const plan = (...Operations: JsonValue[]) => {
    const { reset, add, remove } = planMembership(parsePatch({ Operations }, []))
    return { reset, add: [...add.keys()], remove: [...remove] }
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
    'removing an empty list of members removes nobody',
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
    refuses(t, () => plan({ op, path, value } as JsonValue), { status: 400 }, String(path))
  }
  refuses(
    t,
    () =>
      plan({ op: 'add', path: 'members', value: Array.from({ length: 10_001 }, (_, n) => member(`m${n}`)) }),
    { status: 400 },
  )
})

t.test(
  'a user is validated, and its e-mail address and attribute names are derived from what was sent',
  async t => {
    t.equal(viewUser({ id: 'x', raw: readUser({ userName: 'u' }) }).email, 'u')
    const emails = [{ value: 'first' }, { value: 'work', type: 'Work' }, { value: 'main', primary: 'True' }]
    t.equal(viewUser({ id: 'x', raw: readUser({ userName: 'u', emails }) }).email, 'main')
    t.equal(viewUser({ id: 'x', raw: readUser({ userName: 'u', emails: emails.slice(0, 2) }) }).email, 'work')
    t.equal(
      viewUser({ id: 'x', raw: readUser({ userName: 'u', emails: emails.slice(0, 1) }) }).email,
      'first',
    )
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
  },
)
