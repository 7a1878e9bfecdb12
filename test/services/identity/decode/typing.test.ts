/** From a field's texts to its typed value (rules 4 to 7). */
import t from 'tap'
import { parseForm } from '../../../../services/identity/index.js'
import { type Case, table, text, wrong } from '../every-kind.js'
import { submit, submitEntries, submitJson, traitsSchema, URL_ENCODED } from '../submit.js'

t.test('a blank counts as not supplied, unless the schema allows the empty text or null', t =>
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

t.test('multipleOf is checked by decimal digits, without rounding errors', async t => {
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

t.test('a checkbox with a hidden field is true when any value is true, in either order', t =>
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

t.test('a fixed value is matched by its text and keeps its type', t =>
  table(t, [
    ['level', ['1'], { level: 1 }],
    ['level', ['two'], { level: 'two' }],
    ['level', ['true'], { level: true }],
    ['level', ['01'], wrong('level', 'enum')],
    ['level', ['three'], wrong('level', 'enum')],
  ]),
)

t.test('a wrong fixed value gives the same error code from a form and from JSON', async t => {
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
  const result = await parseForm(fixed, { contentType: 'application/json', body: JSON.stringify({ traits }) })
  const messages = 'errors' in result ? result.errors.map(({ path, message }) => [path, message]) : []
  const [one, choose] = ['This has to be the one accepted value.', 'Choose one of the offered values.']
  t.same(Object.fromEntries(messages), {
    'traits.one': one,
    'traits.either': choose,
    'traits.size': choose,
    'traits.typed': one,
  })
})

t.test('of several types the first that fits is used: boolean, number, text', t =>
  table(t, [
    ['union', ['true'], { union: true }],
    ['union', ['1.5'], { union: 1.5 }],
    ['union', ['x'], { union: 'x' }],
    ['union', ['0x10'], { union: '0x10' }],
    ['maybe', ['x'], wrong('maybe')],
  ]),
)

t.test('a single value sent twice is an error', t =>
  table(t, [
    ['text', ['a', 'b'], wrong('text', 'duplicate')],
    ['text', ['a', 'a'], wrong('text', 'duplicate')],
    ['text', ['', 'a'], { text: 'a' }],
    ['count', ['1', '2'], wrong('count', 'duplicate')],
  ]),
)

t.test('a number that is too large is reported as too large', async t => {
  const schema = traitsSchema({ whole: { type: 'integer' }, any: { type: ['number', 'null'] }, word: text })
  const messages = async (body: string) => {
    const result = await parseForm(schema, { contentType: URL_ENCODED, body })
    return 'errors' in result
      ? result.errors.map(({ code, message }) => `${code}: ${message}`)
      : result.traits
  }
  for (const [body, message] of [
    ['traits.whole=9007199254740993', 'type: This whole number is too large to be stored exactly.'],
    ['traits.any=-9007199254740993', 'type: This whole number is too large to be stored exactly.'],
    ['traits.any=1e400', 'type: This number is too large.'],
    ['traits.whole=1e400', 'type: This number is too large.'],
    ['traits.whole=1.5', 'type: This has to be a whole number.'],
    ['traits.whole=9007199254740993.5', 'type: This has to be a whole number.'],
    ['traits.whole=many', 'type: This has to be a whole number.'],
  ] as const) {
    t.same(await messages(body), [message], body)
  }
  t.same(await messages('traits.word=9007199254740993'), { word: '9007199254740993' })
})
