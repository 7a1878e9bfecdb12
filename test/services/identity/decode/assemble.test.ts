/** From typed values to the validated whole: lists, objects, JSON, errors (rules 8 to 11 and 13). */
import t from 'tap'
import { parseForm } from '../../../../services/identity/index.js'
import { everyKind as schema, table, text, wrong } from '../every-kind.js'
import { submit, submitEntries, submitJson, traitsSchema, URL_ENCODED } from '../submit.js'

t.test('a list is sent as repeated names or as positions, and not as both', async t => {
  await table(t, [
    ['tags', ['b', 'a'], { tags: ['b', 'a'] }],
    ['tags', ['', ''], { tags: [] }],
    ['tags', ['["x","y"]'], { tags: ['x', 'y'] }],
    ['tags', ['[x'], wrong('tags', 'malformed')],
    ['tags', ['[x', 'y'], { tags: ['[x', 'y'] }],
    ['counts', ['1', '02'], { counts: [1, 2] }],
    ['counts', ['1', 'x', '3'], wrong('counts.1')],
    ['counts', ['[1,"2"]'], wrong('counts.1')],
    ['pair', ['7', 'true'], { pair: [7, true] }],
    ['pair', ['7', 'true', 'more'], wrong('pair.2', 'additionalItems')],
  ])
  const positions: [Record<string, string>, unknown][] = [
    [{ 'tags.10': 'c', 'tags.2': 'a', 'tags.9': 'b' }, { tags: ['a', 'b', 'c'] }],
    [{ 'tags.999999999999999': 'z', 'tags.0': '' }, { tags: ['z'] }],
    [{ 'tags.0': '', 'tags.1': '' }, { tags: [] }],
    [{ tags: 'a', 'tags.0': 'b' }, wrong('tags', 'mixed')],
    [{ 'pair.1': 'false', 'pair.0': '3' }, { pair: [3, false] }],
    [{ 'pair.2': 'x' }, {}],
    [{ 'counts.5': 'x', 'counts.2': '', 'counts.3': '4' }, wrong('counts.1')],
    [
      { 'people.4.name': 'B', 'people.1.name': 'A', 'people.1.adult': 'true', 'people.7.name': '' },
      { people: [{ name: 'A', adult: true }, { name: 'B' }] },
    ],
    [{ 'people.0.name': '', 'people.0.adult': 'false' }, { people: [] }],
    [{ 'people.0.name': '', 'people.0.adult': 'true' }, wrong('people.0.name', 'required')],
    [{ 'people.0': '{"name":"A"}' }, { people: [{ name: 'A' }] }],
  ]
  for (const [fields, expected] of positions) {
    const entries = Object.entries(fields).map(([name, value]) => [`traits.${name}`, value] as const)
    t.same(await submitEntries(schema, entries), expected, JSON.stringify(fields))
  }
  const many = Array.from({ length: 1001 }, () => ['traits.tags', 'x'] as const)
  t.same(await submitEntries(schema, many), wrong('tags', 'too_many_items'))
  t.same(await submitEntries(schema, many.slice(1)), { tags: many.slice(1).map(() => 'x') })
})

t.test('a list that may hold itself is refused where it would never end', async t => {
  const rows = { type: 'array', items: { $ref: '#/definitions/rows' } }
  const endless = traitsSchema({ rows: { $ref: '#/definitions/rows' } }, {}, { definitions: { rows } })
  const deep = wrong(`rows${'.0'.repeat(63)}`, 'too_deep')
  t.same(await submitEntries(endless, [['traits.rows', 'x']]), deep)
  t.same(await submitEntries(endless, [['traits.rows', '[[],[[]]]']]), { rows: [[], [[]]] })
})

t.test(
  'an optional object sent blank is left out, and one sent in part needs its required fields',
  async t => {
    const cases: [Record<string, string>, unknown][] = [
      [{ 'address.city': '', 'address.zip': '' }, {}],
      [{ 'address.zip': '1' }, wrong('address.city', 'required')],
      [{ 'address.city': 'X' }, { address: { city: 'X' } }],
      [{ 'address.city': '', 'address.main': 'false' }, {}],
      [{ 'address.city': 'X', 'address.main': 'false' }, { address: { city: 'X', main: false } }],
      [{ address: '{"city":"X","zip":1,"other":2}' }, wrong('address.zip')],
      [{ address: '{"city":"X","other":2}' }, { address: { city: 'X' } }],
      [{ address: '{"city":"X"}', 'address.zip': '1' }, wrong('address', 'conflict')],
      [{ address: '[]' }, wrong('address')],
      [{ address: '{},"x":1' }, wrong('address', 'malformed')],
      [{ extra: '{"any":[1,{"b":null}]}' }, { extra: { any: [1, { b: null }] } }],
      [{ extra: 'x' }, wrong('extra', 'malformed')],
      [{ extra: '"x"' }, wrong('extra')],
    ]
    for (const [fields, expected] of cases) {
      const entries = Object.entries(fields).map(([name, value]) => [`traits.${name}`, value] as const)
      t.same(await submitEntries(schema, entries), expected, JSON.stringify(fields))
    }
    const loose = traitsSchema({ prefs: { type: 'object', properties: { news: { type: 'boolean' } } } })
    t.same(await submitEntries(loose, [['traits.prefs.news', 'false']]), { prefs: { news: false } })
  },
)

t.test('a row that is filled in has its required objects, even with nothing but an empty list', async t => {
  const tags = { type: 'array', items: text }
  const row = {
    type: 'object',
    required: ['name', 'marks'],
    properties: { name: text, marks: { type: 'object', required: ['tags'], properties: { tags } } },
  }
  const schema = traitsSchema({ rows: { type: 'array', items: row } })
  const entries = (name: string) => [
    ['traits.rows.0.name', name] as const,
    ['traits.rows.0.marks.tags.0', ''] as const,
  ]
  t.same(await submitEntries(schema, entries('A')), { rows: [{ name: 'A', marks: { tags: [] } }] })
  t.same(await submitEntries(schema, entries('')), { rows: [] })
})

t.test('a blank choice adds no item to a list and does not create an object', async t => {
  const choice = { type: 'string', enum: ['', 'a'] }
  const noted = { type: 'object', properties: { note: choice, name: text } }
  const schema = traitsSchema({
    picks: { type: 'array', items: choice },
    rows: { type: 'array', items: noted },
    noted,
  })
  t.same(await submit(schema, 'traits.picks.0=&traits.picks.1=a&traits.picks.2='), { picks: ['a'] })
  t.same(await submit(schema, 'traits.rows.0.note=&traits.rows.0.name='), { rows: [] })
  t.same(await submit(schema, 'traits.noted.note=&traits.noted.name='), {})
  t.same(await submit(schema, 'traits.noted.note=&traits.noted.name=x'), { noted: { note: '', name: 'x' } })
})

t.test('the positions of a tuple are kept', async t => {
  const place = { type: 'object', required: ['city'], properties: { city: text } }
  const tuple = (items: object[], rest = {}) => traitsSchema({ it: { type: 'array', items, ...rest } })
  const numbers = tuple([{ type: 'number' }, { type: 'number' }], { additionalItems: { type: 'boolean' } })
  t.same(await submit(numbers, 'traits.it.0=&traits.it.1=2.5'), ['traits.it.0 required'])
  t.same(await submit(numbers, 'traits.it.1=2.5'), ['traits.it.0 required'])
  t.same(await submit(numbers, 'traits.it.0=1.5&traits.it.1='), { it: [1.5] })
  t.same(await submit(numbers, 'traits.it.0=&traits.it.1='), { it: [] })
  t.same(await submit(numbers, 'traits.it.0=1&traits.it.1=2&traits.it.9=on&traits.it.5='), {
    it: [1, 2, true],
  })
  const whole = tuple([{ type: 'number' }, { type: ['number', 'null'] }, { type: 'number' }], { minItems: 3 })
  t.same(await submit(whole, 'traits.it.0=1&traits.it.1=&traits.it.2='), ['traits.it.2 required'])
  t.same(await submit(whole, 'traits.it.0=1&traits.it.1=&traits.it.2=3'), { it: [1, null, 3] })
  t.same(
    await submit(whole, 'traits.it.0=&traits.it.1=&traits.it.2='),
    {},
    'an optional tuple may be left out',
  )
  const mixed = tuple([{ type: ['integer', 'null'] }, place, { type: 'boolean' }])
  t.same(await submit(mixed, 'traits.it.0=&traits.it.1.city=Rome'), { it: [null, { city: 'Rome' }] })
  t.same(await submit(mixed, 'traits.it.0=5&traits.it.1.city=&traits.it.2=true'), [
    'traits.it.1.city required',
  ])
  t.same(
    await submit(mixed, 'traits.it.0=&traits.it.1.city=&traits.it.2=false'),
    { it: [] },
    'an untouched tuple is empty',
  )
})

t.test('a missing required object is reported at its required leaves', async t => {
  const inner = {
    type: 'object',
    required: ['b', 'c'],
    properties: { b: text, c: { type: 'object', required: ['d'], properties: { d: text } } },
  }
  const needy = traitsSchema({ a: inner }, { required: ['a'] })
  const leaves = ['traits.a.b required', 'traits.a.c.d required']
  t.same(await submit(needy, ''), leaves)
  t.same(await submitJson(needy, { traits: {} }), leaves)
  t.same(await submitJson(needy, {}), leaves)
})

t.test('traits are accepted as one JSON text, but not together with other fields', async t => {
  t.same(await submitEntries(schema, [['traits', '{"count":1,"nope":2}']]), { count: 1 })
  t.same(
    await submitEntries(schema, [
      ['traits', '{"count":1}'],
      ['traits.text', 'a'],
    ]),
    ['traits conflict'],
  )
  t.same(
    await submitEntries(schema, [
      ['traits', '{"count":1}'],
      ['traits.nope', 'a'],
    ]),
    { count: 1 },
  )
  t.same(
    await submitEntries(schema, [
      ['traits', ''],
      ['traits.text', 'a'],
    ]),
    { text: 'a' },
  )
  t.same(await submitEntries(schema, [['traits', '[]']]), ['traits type'])
})

t.test('nested JSON keeps its types, and texts of flat dotted JSON are converted', async t => {
  t.same(await submitJson(schema, { traits: { count: 29, text: 'a', tags: ['x'] }, other: 1 }), {
    count: 29,
    text: 'a',
    tags: ['x'],
  })
  t.same(await submitJson(schema, { traits: { count: '29' } }), wrong('count'))
  t.same(await submitJson(schema, { traits: { flag: 'true' } }), wrong('flag'))
  t.same(await submitJson(schema, { traits: { text: '' } }), { text: '' })
  t.same(await submit(schema, '{"traits":{"count":9007199254740993}}', 'application/json'), wrong('count'))
  t.same(await submitJson(schema, { 'traits.count': '29', 'traits.flag': 'on', 'traits.tags': ['a'] }), {
    count: 29,
    flag: true,
    tags: ['a'],
  })
  t.same(await submitJson(schema, { 'traits.count': 29, 'traits.address.city': 'X', 'traits.maybe': null }), {
    count: 29,
    maybe: null,
    address: { city: 'X' },
  })
  t.same(await submitJson(schema, { traits: { count: 1 }, 'traits.text': 'a' }), ['traits conflict'])
  t.same(await submitJson(schema, { traits: 'x' }), ['traits malformed'])
  t.same(await submitJson(schema, { traits: null }), ['traits type'])
  t.same(
    await submitJson(schema, { traits: { tags: new Array(1001).fill('x') } }),
    wrong('tags', 'too_many_items'),
  )
})

t.test('a number too large to be stored is an error anywhere in the JSON', async t => {
  const cases: [string, string][] = [
    ['{"traits":{"count":1e400}}', 'traits.count type'],
    ['{"traits":{"size":-1e400}}', 'traits.size type'],
    ['{"traits":{"extra":{"a":[1e400]}}}', 'traits.extra type'],
    ['{"traits.size":1e400}', 'traits.size type'],
    ['{"traits.extra":"{\\"a\\":1e400}"}', 'traits.extra type'],
  ]
  for (const [body, error] of cases) t.same(await submit(schema, body, 'application/json'), [error], body)
})

t.test('unknown JSON fields are dropped, unless the schema sets additionalProperties', async t => {
  const open = traitsSchema({ a: text }, { additionalProperties: { type: 'integer' } })
  t.same(await submitJson(open, { traits: { a: 'x', b: 1 } }), { a: 'x', b: 1 })
  t.same(
    await submitEntries(open, [
      ['traits.a', 'x'],
      ['traits.b', '1'],
    ]),
    { a: 'x' },
  )
  const closed = traitsSchema({ a: text }, { additionalProperties: false })
  t.same(await submitJson(closed, { traits: { a: 'x', b: 1 } }), ['traits additionalProperties'])
  t.same(
    await submitEntries(closed, [
      ['traits.a', 'x'],
      ['traits.b', '1'],
    ]),
    { a: 'x' },
  )
})

t.test(
  'all errors are reported at once with path and code, and without the values that were sent',
  async t => {
    const strict = traitsSchema({
      email: { type: 'string', format: 'email' },
      day: { type: 'string', format: 'date' },
      at: { type: 'string', format: 'date-time' },
      time: { type: 'string', format: 'time' },
      site: { type: 'string', format: 'uri' },
      phone: { type: 'string', format: 'tel' },
      code: { type: 'string', pattern: '^[a-z]+$', minLength: 8 },
      age: { type: 'integer', minimum: 18 },
      size: { enum: ['S', 'M'] },
    })
    const names = ['email', 'day', 'at', 'time', 'site', 'phone', 'code', 'age', 'size']
    const body = names.map(name => `traits.${name}=${name === 'age' ? '17' : 'SECRET'}`).join('&')
    const result = await parseForm(strict, { contentType: URL_ENCODED, body: Buffer.from(body) })
    t.notMatch(JSON.stringify(result), /SECRET|17/)
    t.same(await submit(strict, body), [
      'traits.size enum',
      ...['email', 'day', 'at', 'time', 'site', 'phone'].map(name => `traits.${name} format`),
      'traits.code minLength',
      'traits.code pattern',
      'traits.age minimum',
    ])
    const good =
      'traits.email=a@b.example&traits.day=2024-02-29&traits.at=2024-02-29T10:00:00Z&traits.time=10:00:00Z'
    const rest = '&traits.site=https://a.example/%3Fb&traits.phone=%2B44+(20)+7946-0000&traits.size=S'
    t.equal(Array.isArray(await submit(strict, good + rest)), false)
  },
)

t.test('among branches that a fixed value selects, only the selected one is validated', async t => {
  const branch = (kinds: string[], name: string, more: object = {}) => ({
    required: ['kind', name],
    properties: { kind: { enum: kinds }, [name]: text },
    ...more,
  })
  const object = { type: 'object' }
  const shapes: Record<string, object> = {
    inline: { ...object, oneOf: [branch(['card', 'debit'], 'number'), branch(['iban'], 'account')] },
    'by reference': {
      oneOf: [{ $ref: '#/definitions/card', title: 'Card' }, { $ref: '#/definitions/iban' }],
    },
    'as in OpenAPI': {
      ...object,
      discriminator: { propertyName: 'kind', mapping: { card: '#/definitions/card' } },
      oneOf: [{ $ref: '#/definitions/card' }, { $ref: '#/definitions/iban' }],
    },
  }
  const definitions = {
    card: branch(['card', 'debit'], 'number', object),
    iban: branch(['iban'], 'account', object),
  }
  for (const [name, pay] of Object.entries(shapes)) {
    const schema = traitsSchema({ pay }, { required: ['pay'] }, { definitions })
    const cases: [string, unknown][] = [
      ['', ['traits.pay.kind required']],
      ['traits.pay.kind=&traits.pay.number=4', ['traits.pay.kind required']],
      ['traits.pay.kind=debit', ['traits.pay.number required']],
      ['traits.pay.kind=iban&traits.pay.number=4', ['traits.pay.account required']],
      ['traits.pay.kind=x', ['traits.pay.kind enum']],
      ['traits.pay.kind=card&traits.pay.number=4', { pay: { kind: 'card', number: '4' } }],
    ]
    for (const [body, expected] of cases) t.same(await submit(schema, body), expected, `${name}: ${body}`)
    const json = (pay: unknown) => submitJson(schema, { traits: { pay } })
    t.same(await json({ kind: 'x', number: 4 }), ['traits.pay.kind enum'], name)
    t.same(await json({ kind: 7 }), ['traits.pay.kind enum'], name)
    for (const other of ['x', null, []]) t.same(await json(other), ['traits.pay type'], name)
  }
  const told = (...branches: object[]) => traitsSchema({ pay: { ...object, oneOf: branches } })
  const overlapping = told(branch(['a', 'b'], 'x'), branch(['b', 'c'], 'y'))
  t.same(await submit(overlapping, 'traits.pay.kind=b&traits.pay.x=1&traits.pay.y=1'), ['traits.pay oneOf'])
  t.same(await submit(overlapping, 'traits.pay.kind=b&traits.pay.x=1'), { pay: { kind: 'b', x: '1' } })
})

t.test('an error of anyOf, oneOf or if is reported only when no error of a field explains it', async t => {
  const either = traitsSchema(
    { kind: { enum: ['a', 'b'] }, a: text, b: text },
    JSON.parse(
      '{"if":{"properties":{"kind":{"const":"a"}}},"then":{"required":["a"]},"else":{"required":["b"]}}',
    ),
  )
  t.same(await submit(either, 'traits.kind=a'), ['traits.a required'])
  t.same(await submit(either, 'traits.kind=b'), ['traits.b required'])
  const both = traitsSchema({ a: text, b: text }, { oneOf: [{ required: ['a'] }, { required: ['b'] }] })
  t.same(await submit(both, 'traits.a=1&traits.b=1'), ['traits oneOf'])
  t.same(await submit(both, 'traits.a=1'), { a: '1' })
  const whole = traitsSchema({
    tags: { type: 'array', items: text, contains: { const: 'a' } },
    extra: { type: 'object', propertyNames: { pattern: '^a' } },
    no: false,
  })
  t.same(await submit(whole, 'traits.tags=b&traits.tags=c&traits.extra={"b":1}&traits.no=x'), [
    'traits.tags contains',
    'traits.extra not_allowed',
    'traits.no not_allowed',
  ])
  const typed = traitsSchema({
    n: {
      anyOf: [
        { type: 'integer', minimum: 5 },
        { type: 'integer', maximum: 1 },
      ],
    },
  })
  t.same(await submit(typed, 'traits.n=x'), ['traits.n type'], 'a failed conversion gives one error')
})
