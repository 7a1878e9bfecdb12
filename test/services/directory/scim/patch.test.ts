import t from 'tap'
import type { JsonValue } from '../../../../services/directory/model.js'
import { enterpriseUrn } from '../../../../services/directory/scim/attributes.js'
import { base, patched, refuses } from './tools.js'

t.test('PATCH accepts what identity providers send', async t => {
  const table: [string, JsonValue[], object][] = [
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
      'a complex attribute is merged',
      [{ op: 'replace', value: { name: { familyName: 'L' } } }],
      { name: { givenName: 'Ada', familyName: 'L' } },
    ],
    [
      'value path',
      [{ op: 'replace', path: 'emails[type eq "work"].value', value: 'n' }],
      { emails: [{ type: 'work', value: 'n', primary: true }] },
    ],
    [
      'a missing element is added',
      [{ op: 'Add', path: 'emails[type eq "home"].value', value: 'h' }],
      {
        emails: [
          { type: 'work', value: 'w', primary: true },
          { type: 'home', value: 'h' },
        ],
      },
    ],
    [
      'a new primary value makes the old one secondary',
      [{ op: 'add', path: 'emails', value: [{ value: 'h', primary: true }] }],
      {
        emails: [
          { type: 'work', value: 'w', primary: false },
          { value: 'h', primary: true },
        ],
      },
    ],
    [
      'an equal value is not added twice',
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
      'an element whose value is removed is removed',
      [
        { op: 'add', path: 'emails', value: [{ type: 'home', value: 'h', primary: false }] },
        { op: 'remove', path: 'emails[type eq "home"].value' },
      ],
      {},
    ],
    [
      'elements whose values are removed without a filter are removed',
      [
        { op: 'add', path: 'ims', value: [{ value: 'i' }, { value: 'j', type: 'x' }] },
        { op: 'remove', path: 'ims.value' },
      ],
      {},
    ],
    [
      'an element with other attributes is kept',
      [
        { op: 'add', path: 'addresses', value: [{ type: 'work', locality: 'L', country: 'C' }] },
        { op: 'remove', path: 'addresses[type eq "work"].country' },
      ],
      { addresses: [{ type: 'work', locality: 'L' }] },
    ],
    [
      'a value added to several elements is copied to each',
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
      'lists of one value, as older jobs of Entra ID send them',
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
      'removing a missing value changes nothing',
      [
        { op: 'remove', path: 'title' },
        { op: 'remove', path: 'emails[type eq "x"]' },
      ],
      {},
    ],
    [
      'null removes the attribute',
      [{ op: 'replace', path: 'name.givenName', value: null }],
      { name: undefined },
    ],
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
      'id and meta in an object are ignored',
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

t.test('PATCH refuses invalid operations with the scimType of the RFC', async t => {
  const table: [JsonValue, string][] = [
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
  t.notOk('title' in base, 'the operation before the failing one has no effect')
})
