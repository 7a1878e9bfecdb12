import t, { type Test } from 'tap'
import { parseForm } from '../../../services/identity/index.js'
import {
  MULTIPART,
  multipart,
  submit,
  submitEntries,
  submitJson,
  traitsSchema,
  URL_ENCODED,
} from './submit.js'

const text = { type: 'string' }
const schema = traitsSchema({
  text,
  count: { type: 'integer' },
  size: { type: 'number' },
  flag: { type: 'boolean' },
  maybe: { type: ['integer', 'null'] },
  union: { type: ['string', 'number', 'boolean'] },
  level: { enum: [1, 'two', true, null] },
  terms: { const: true },
  note: { type: 'string', enum: ['', 'x'] },
  tags: { type: 'array', items: text },
  counts: { type: 'array', items: { type: 'integer' } },
  pair: { type: 'array', items: [{ type: 'integer' }, { type: 'boolean' }], additionalItems: false },
  people: {
    type: 'array',
    items: { type: 'object', required: ['name'], properties: { name: text, adult: { type: 'boolean' } } },
  },
  address: {
    type: 'object',
    required: ['city'],
    properties: { city: text, zip: text, main: { type: 'boolean' } },
  },
  extra: { type: 'object' },
  constructor: text,
})

/** One field's texts in, what comes out. */
type Case = readonly [name: string, texts: readonly string[], expected: unknown]

async function table(t: Test, cases: readonly Case[]): Promise<void> {
  for (const [name, texts, expected] of cases) {
    const got = await submitEntries(
      schema,
      texts.map(value => [`traits.${name}`, value]),
    )
    t.same(got, expected, `${name} <- ${JSON.stringify(texts).slice(0, 60)}`)
  }
}
const wrong = (name: string, code = 'type') => [`traits.${name} ${code}`]

t.test('a media type is known whatever its case and parameters, and others are refused', async t => {
  const body = 'traits.text=a'
  t.same(await submit(schema, body, 'Application/X-WWW-Form-UrlEncoded; charset=latin1'), { text: 'a' })
  t.same(await submit(schema, '{"traits":{"text":"a"}}', 'application/JSON;v=1'), { text: 'a' })
  t.same(await submit(schema, multipart([['traits.text', 'a']]), 'Multipart/Form-Data; Boundary="XX"'), {
    text: 'a',
  })
  for (const type of [
    'text/plain',
    'application/xml',
    '',
    'application/jsonp',
    'multipart/mixed; boundary=XX',
  ]) {
    t.same(await submit(schema, body, type), [' unsupported_media_type'], type)
  }
  t.same(await parseForm(schema, { contentType: undefined, body: Buffer.from(body) }), {
    errors: [
      {
        path: '',
        code: 'unsupported_media_type',
        message: 'Send application/x-www-form-urlencoded, multipart/form-data or application/json.',
      },
    ],
  })
})

t.test('a malformed body is one error of the whole document', async t => {
  const json = 'application/json'
  for (const body of ['', '{', '{"a":}', '\ufeffx', 'nul']) {
    t.same(await submit(schema, body, json), [' malformed'], `JSON ${body}`)
  }
  for (const body of ['[]', '"x"', 'null', '5'])
    t.same(await submit(schema, body, json), [' malformed'], `JSON ${body}`)
  const part = [['traits.text', 'a']] as const
  t.same(await submit(schema, multipart(part, ''), MULTIPART), [' malformed'], 'no closing boundary')
  t.same(await submit(schema, multipart(part, '--XX'), MULTIPART), [' malformed'], 'cut boundary')
  t.same(await submit(schema, multipart(part).slice(0, -20), MULTIPART), [' malformed'], 'cut part')
  t.same(
    await submit(schema, multipart(part), 'multipart/form-data'),
    [' malformed'],
    'no boundary parameter',
  )
  t.same(
    await submit(schema, multipart(part), 'multipart/form-data; boundary=YY'),
    [' malformed'],
    'other boundary',
  )
})

t.test('url-encoded text is decoded as browsers encode it', async t => {
  const cases: [string, unknown][] = [
    ['traits.text=a+b%2Bc', { text: 'a b+c' }],
    ['traits.text=a=b=c', { text: 'a=b=c' }],
    ['&&traits.text=a;b&', { text: 'a;b' }],
    ['traits.text=%zz%4', { text: '%zz%4' }],
    ['traits%2Etext=%C3%BC', { text: 'ü' }],
    ['traits.text=ü', { text: 'ü' }],
    ['traits.text=%FFa', { text: '\ufffda' }],
    ['traits.text=%C3', { text: '\ufffd' }],
    ['traits.text', {}],
    ['traits.text=%0D%0A', { text: '\r\n' }],
    ['traits.text=%00', { text: '\0' }],
  ]
  for (const [body, expected] of cases) t.same(await submit(schema, body), expected, body)
})

t.test('multipart names unescape only what browsers escape, and values are literal', async t => {
  const odd = traitsSchema({ 'a"b': text, 'a%41': text, 'a+b': text, é: text })
  const parts = [
    ['traits.a%22b', '%22+'],
    ['traits.a%41', '1'],
    ['traits.a+b', '2'],
    ['traits.é', 'ü'],
  ] as const
  t.same(await submit(odd, multipart(parts), MULTIPART), { 'a"b': '%22+', 'a%41': '1', 'a+b': '2', é: 'ü' })
  const strange =
    '--XX\r\nContent-Disposition: form-data; name="traits.text"\r\nContent-Type: text/plain; charset=bogus\r\n\r\nü\r\n--XX--\r\n'
  t.same(await submit(schema, strange, MULTIPART), { text: 'ü' }, 'an unknown charset is read as UTF-8')
})

t.test('a file for a trait is refused at its name, elsewhere and without a choice it is ignored', async t => {
  const file = (name: string, fileName: string) => `name="${name}"; filename="${fileName}"`
  const sent = (name: string, fileName: string, content: string) =>
    submit(
      schema,
      multipart([
        [file(name, fileName), content],
        ['traits.text', 'a'],
      ]),
      MULTIPART,
    )
  t.same(await sent('traits.tags', 'x.png', 'png'), ['traits.tags file'])
  t.same(await sent('traits.tags', '', ''), { text: 'a' })
  t.same(await sent('picture', 'x.png', 'png'), { text: 'a' })
})

t.test('only names of the schema count', async t => {
  const names = [
    'csrf_token',
    'method',
    'text',
    'traits.',
    'traits..text',
    'traits.text.x',
    'traits.nope',
    'Traits.text',
  ]
  const body = [
    ...names,
    'traits.tags.01',
    'traits.tags.x',
    'traits.tags.-1',
    'traits.tags[0]',
    'traits[text]',
  ]
  t.same(
    await submitEntries(
      schema,
      body.map(name => [name, 'x']),
    ),
    {},
  )
  t.same(
    await submitEntries(schema, [
      [`traits.${'a.'.repeat(70)}text`, 'x'],
      [`traits.${'n'.repeat(600)}`, 'x'],
    ]),
    {},
  )
})

t.test('names of object prototypes reach nothing, unless the schema declares them', async t => {
  const names = [
    '__proto__.polluted',
    'constructor.prototype.polluted',
    'toString',
    'hasOwnProperty',
    '__proto__',
  ]
  const got = await submitEntries(schema, [
    ...names.flatMap(name => [[name, 'x'] as const, [`traits.${name}`, 'x'] as const]),
    ['traits.constructor', 'mine'],
  ])
  t.same(got, { constructor: 'mine' })
  t.equal(Object.hasOwn(got as object, 'constructor'), true)
  t.equal(({} as { polluted?: string }).polluted, undefined)
  const json =
    '{"__proto__":{"x":1},"traits":{"__proto__":{"flag":true},"extra":{"__proto__":{"y":1},"z":1}}}'
  const parsed = (await submit(schema, json, 'application/json')) as { extra: object }
  t.same(Object.entries(parsed), [['extra', { z: 1 }]])
  t.equal(Object.getPrototypeOf(parsed.extra), Object.prototype)
  const needy = traitsSchema({ toString: text }, { required: ['toString'] })
  t.same(
    await submit(needy, ''),
    ['traits.toString required'],
    'an inherited name does not satisfy "required"',
  )
})

t.test('blank means not supplied, except where the schema names the empty text or null', t =>
  table(t, [
    ['text', [''], {}],
    ['count', [''], {}],
    ['flag', [''], {}],
    ['union', [''], {}],
    ['address.city', [''], {}],
    ['terms', [''], {}],
    ['maybe', [''], { maybe: null }],
    ['level', [''], { level: null }],
    ['note', [''], { note: '' }],
    ['tags', ['', 'a', '', 'b'], { tags: ['a', 'b'] }],
  ]),
)

t.test('a required blank is a "required" error for every type', async t => {
  const needy = traitsSchema(
    { s: text, n: { type: 'number' }, b: { type: 'boolean' } },
    { required: ['s', 'n', 'b'] },
  )
  t.same(await submit(needy, 'traits.s=&traits.n=&traits.b='), [
    'traits.s required',
    'traits.n required',
    'traits.b required',
  ])
})

t.test('text is kept verbatim', t =>
  table(t, [
    ['text', ['  a  '], { text: '  a  ' }],
    ['text', ['007'], { text: '007' }],
    ['text', ['true'], { text: 'true' }],
    ['text', ['e\u0301'], { text: 'e\u0301' }],
    ['text', [' '], { text: ' ' }],
  ]),
)

t.test('numbers are decimal, exact and finite', t =>
  table(t, [
    ['count', ['29'], { count: 29 }],
    ['count', [' \t29\r\n'], { count: 29 }],
    ['count', ['+007'], { count: 7 }],
    ['count', ['29.0'], { count: 29 }],
    ['count', ['2.9e1'], { count: 29 }],
    ['count', ['2900e-2'], { count: 29 }],
    ['count', ['-0'], { count: 0 }],
    ['count', ['9007199254740991'], { count: 9007199254740991 }],
    ['count', ['1e20'], { count: 1e20 }],
    ['size', ['-1.50'], { size: -1.5 }],
    ['size', ['.5'], { size: 0.5 }],
    ['size', ['1e-400'], { size: 0 }],
    ...[
      ' ',
      '0x10',
      '1_000',
      '1,5',
      '1e400',
      'Infinity',
      'NaN',
      '29px',
      '--1',
      '1e',
      '.',
      '5.',
      '\u0665',
      '\u00a05',
    ].flatMap((bad): Case[] => [
      ['count', [bad], wrong('count')],
      ['size', [bad], wrong('size')],
    ]),
    ['count', ['29.5'], wrong('count')],
    ['count', ['9007199254740991.4'], wrong('count')],
    ['count', ['9007199254740993'], wrong('count')],
    ['count', ['-9007199254740992.0'], wrong('count')],
    ['size', ['9007199254740993'], wrong('size')],
    ['size', ['9'.repeat(400)], wrong('size')],
  ]),
)

t.test('a multiple is one by the decimal digits, not by how a computer rounds them', async t => {
  const divided = (multipleOf: number) => traitsSchema({ n: { type: 'number', multipleOf } })
  const cases: [number, string[], string[]][] = [
    [0.01, ['19.99', '0.07', '-1.10', '123456789.12', '0', '1e15', '9007199254740991'], ['19.999', '0.001']],
    [0.1, ['0.3', '1.7'], ['0.35']],
    [2.5, ['7.5', '-10'], ['7', '7.4999999999']],
    [1e-7, ['0.0000003'], ['0.00000035', '1e-8']],
    [3, ['9', '-3', '3e20'], ['10', '9.3']],
  ]
  for (const [divisor, good, bad] of cases) {
    for (const text of good) {
      t.same(await submit(divided(divisor), `traits.n=${text}`), { n: Number(text) }, `${text} by ${divisor}`)
    }
    for (const text of bad) {
      const label = `${text} by ${divisor}`
      t.same(await submit(divided(divisor), `traits.n=${text}`), wrong('n', 'multipleOf'), label)
    }
  }
  const told = await parseForm(divided(0.01), {
    contentType: URL_ENCODED,
    body: Buffer.from('traits.n=0.001'),
  })
  t.match(told, { errors: [{ message: 'Use a multiple of 0.01.' }] })
})

t.test('a checkbox with its hidden twin is true when any value is true, in either order', t =>
  table(t, [
    ['flag', ['false'], { flag: false }],
    ['flag', ['false', 'true'], { flag: true }],
    ['flag', ['true', 'false'], { flag: true }],
    ['flag', ['false', 'on'], { flag: true }],
    ['flag', [' true '], { flag: true }],
    ['flag', ['', 'false'], { flag: false }],
    ['flag', [], {}],
    ['terms', ['false', 'true'], { terms: true }],
    ['terms', ['false'], wrong('terms', 'enum')],
    ...['TRUE', '1', 'yes', 'off', 'null'].map((bad): Case => ['flag', [bad], wrong('flag')]),
    ['flag', ['true', 'maybe'], wrong('flag', 'duplicate')],
  ]),
)

t.test('a fixed value is matched by its text and keeps its own type', t =>
  table(t, [
    ['level', ['1'], { level: 1 }],
    ['level', ['two'], { level: 'two' }],
    ['level', ['true'], { level: true }],
    ['level', ['01'], wrong('level', 'enum')],
    ['level', ['three'], wrong('level', 'enum')],
  ]),
)

t.test('a wrong fixed value has one code, from a form and from JSON', async t => {
  const fixed = traitsSchema({
    one: { const: 'a' },
    either: { oneOf: [{ const: 'a', title: 'A' }, { const: 'b' }] },
    size: { enum: ['S', 'M'] },
    typed: { ...text, const: 'a' },
  })
  const traits = { one: 'x', either: 'x', size: 'x', typed: 'x' }
  const codes = Object.keys(traits).map(name => `traits.${name} enum`)
  const form = Object.entries(traits).map(([name, value]) => [`traits.${name}`, value] as const)
  t.same(new Set((await submitEntries(fixed, form)) as string[]), new Set(codes))
  t.same(new Set((await submitJson(fixed, { traits })) as string[]), new Set(codes))
})

t.test('of several types the first that fits is taken: boolean, number, text', t =>
  table(t, [
    ['union', ['true'], { union: true }],
    ['union', ['1.5'], { union: 1.5 }],
    ['union', ['x'], { union: 'x' }],
    ['union', ['0x10'], { union: '0x10' }],
    ['maybe', ['x'], wrong('maybe')],
  ]),
)

t.test('a single value sent twice is an error at its name', t =>
  table(t, [
    ['text', ['a', 'b'], wrong('text', 'duplicate')],
    ['text', ['a', 'a'], wrong('text', 'duplicate')],
    ['text', ['', 'a'], { text: 'a' }],
    ['count', ['1', '2'], wrong('count', 'duplicate')],
  ]),
)

t.test('lists come as repeated names or as positions, never both', async t => {
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

t.test(
  'an optional object stays out when it is sent blank; a partly filled one needs its required fields',
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

t.test('what is required all the way up is reported at its leaves', async t => {
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

t.test('traits as one JSON text are accepted alone', async t => {
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

t.test('nested JSON keeps its types, flat dotted JSON types its texts', async t => {
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

t.test('unknown JSON fields are dropped, unless the schema speaks of further properties', async t => {
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

t.test('all errors come at once, each with path and code, and none repeats what was sent', async t => {
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
})

t.test('an error of anyOf, oneOf or if is told only when no field explains it', async t => {
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
  const typed = traitsSchema({
    n: {
      anyOf: [
        { type: 'integer', minimum: 5 },
        { type: 'integer', maximum: 1 },
      ],
    },
  })
  t.same(await submit(typed, 'traits.n=x'), ['traits.n type'], 'a failed conversion is one error')
})

t.test('size has limits: bytes, entries, names, depth', async t => {
  t.same(await submit(schema, `traits.text=${'x'.repeat(1024 * 1024)}`), [' too_large'])
  t.same(await submit(schema, 'traits.tags=&'.repeat(5001)), [' too_large'])
  t.same(await submit(schema, 'traits.tags=&'.repeat(5000)), { tags: [] })
  const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index}=`).join('&')
  t.same(await submit(schema, names(1001)), [' too_large'])
  t.same(await submit(schema, names(1000)), {})
  const parts = Array.from({ length: 5001 }, () => ['traits.tags', 'x'] as const)
  t.same(await submit(schema, multipart(parts), MULTIPART), [' too_large'])
  const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
  t.same(await submit(schema, `{"traits":{"extra":{"a":${deep(62)}}}}`, 'application/json'), [' too_deep'])
  t.same(await submit(schema, `{"x":${deep(400_000)}}`, 'application/json'), [' too_deep'])
  t.same(await submitEntries(schema, [['traits.extra', `{"a":${deep(70)}}`]]), wrong('extra', 'too_deep'))
})
