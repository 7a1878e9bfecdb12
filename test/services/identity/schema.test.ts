import fc from 'fast-check'
import t from 'tap'
import type { JsonValue } from '../../../services/identity/form/json.js'
import { buildNodes } from '../../../services/identity/form/nodes.js'
import { LinearPattern } from '../../../services/identity/form/pattern.js'
import { sentDefaults } from '../../../services/identity/form/sent.js'
import { compileSchema, SchemaError } from '../../../services/identity/index.js'
import { submit, submitEntries, submitJson, traitsSchema } from './submit.js'

const text = { type: 'string' }
const integer = { type: 'integer' }

/** Loads traits with one property `it`, and `count` definitions d0, d1, ... that get the reference to the next one. */
const defined = (it: object, count: number, make: (next: string) => object) => () => {
  const made = Array.from({ length: count }, (_, n) => [`d${n}`, make(`#/definitions/d${n + 1}`)] as const)
  return traitsSchema({ it }, {}, { definitions: Object.fromEntries([...made, [`d${count}`, text]]) })
}
const manyRows = (items: object) => ({ type: 'array', minItems: 1000, items })

t.test('a schema that cannot be used is refused when it loads, with what to change', t => {
  const withTraits =
    (properties: object, rest: object = {}) =>
    () =>
      traitsSchema(properties, rest)
  const cases: [string, () => unknown, RegExp][] = [
    ['not an object', () => compileSchema([]), /must be a JSON object/],
    ['nothing', () => compileSchema(undefined), /JSON/],
    [
      'no traits',
      () => compileSchema({ type: 'object', properties: { name: text } }),
      /object property "traits"/,
    ],
    ['traits as text', () => compileSchema({ properties: { traits: text } }), /object property "traits"/],
    [
      'a later draft',
      () => traitsSchema({}, {}, { $schema: 'https://json-schema.org/draft/2020-12/schema' }),
      /draft-07/,
    ],
    [
      'broken draft-07',
      withTraits({ a: { type: 'strnig' }, b: { minLength: -1, anyOf: [], multipleOf: 0 } }),
      new RegExp(
        [
          'not valid draft-07: #/properties/traits/properties/a/type has to be one of array, boolean, .*, string or a list',
          '#/properties/traits/properties/b/multipleOf has to be greater than 0',
          '#/properties/traits/properties/b/minLength has to be at least 0',
          '#/properties/traits/properties/b/anyOf has to be a list that is not empty$',
        ].join('; '),
      ),
    ],
    [
      'a remote $ref',
      withTraits({ a: { $ref: 'https://evil.example/x.json' } }),
      /"https:\/\/evil.example\/x.json" must start with "#"/,
    ],
    ['a file $ref', withTraits({ a: { $ref: 'other.json#/x' } }), /must start with "#"/],
    [
      'a remote $ref outside the form',
      withTraits({ a: { not: { $ref: 'file:///etc/passwd' } } }),
      /must start with "#"/,
    ],
    [
      'an unresolved $ref',
      withTraits({ a: { $ref: '#/definitions/nope' } }),
      /"#\/definitions\/nope" leads nowhere/,
    ],
    ['an inherited name as $ref', withTraits({ a: { $ref: '#/constructor' } }), /leads nowhere/],
    [
      'a circle of $ref',
      () =>
        traitsSchema(
          { a: { $ref: '#/definitions/a' } },
          {},
          { definitions: { a: { $ref: '#/definitions/b' }, b: { allOf: [{ $ref: '#/definitions/a' }] } } },
        ),
      /comes back to itself/,
    ],
    [
      'a circle of dependencies',
      withTraits({}, { dependencies: { a: { $ref: '#/properties/traits' } } }),
      /comes back to itself/,
    ],
    [
      'a long chain of $ref',
      defined({ $ref: '#/definitions/d0' }, 5000, next => ({ $ref: next })),
      /longer than 100 steps/,
    ],
    [
      'fields nested too deeply',
      defined({ $ref: '#/definitions/d0' }, 100, next => ({ properties: { in: { $ref: next } } })),
      /nested at most 64 deep/,
    ],
    [
      'one definition referred to twice, again and again',
      defined({ $ref: '#/definitions/d0' }, 30, next => ({ allOf: [{ $ref: next }, { $ref: next }] })),
      /traits\.it: more than 1000 parts of the schema apply to one value/,
    ],
    [
      'a recursive definition that doubles on every level',
      defined({ $ref: '#/definitions/d0' }, 1, () => ({
        allOf: [{ properties: { in: { $ref: '#/definitions/d0' } } }],
        additionalProperties: false,
        patternProperties: { '^in$': { $ref: '#/definitions/d0' } },
        properties: { in: {} },
      })),
      /traits\.it\.in.*: more than 1000 parts/,
    ],
    [
      'an object that requires itself',
      defined({ $ref: '#/definitions/d0' }, 1, () => ({
        type: 'object',
        required: ['a', 'b'],
        properties: { a: { $ref: '#/definitions/d0' }, b: { $ref: '#/definitions/d0' } },
      })),
      /traits\.it\.a is required inside itself/,
    ],
    [
      'a form of a milliard rows',
      withTraits({ a: manyRows(manyRows(manyRows(text))) }),
      /the form would have more than 5000 fields/,
    ],
    [
      'definitions that all refer to each other',
      defined({ $ref: '#/definitions/d0' }, 12, () => ({
        properties: Object.fromEntries(
          Array.from({ length: 12 }, (_, to) => [`p${to}`, { $ref: `#/definitions/d${to}` }]),
        ),
      })),
      /the form would have more than 5000 fields/,
    ],
    [
      'two types at one path, allOf',
      withTraits({}, { allOf: [{ properties: { a: text } }, { properties: { a: integer } }] }),
      /traits\.a is declared with different types \(string; integer\)/,
    ],
    [
      'two types at one path, oneOf',
      withTraits({}, { oneOf: [{ properties: { a: text } }, { properties: { a: integer } }] }),
      /traits\.a is declared with different types/,
    ],
    [
      'an object and a text at one path',
      withTraits({ a: text }, { anyOf: [{ properties: { a: { type: 'object' } } }] }),
      /traits\.a is declared with different types/,
    ],
    [
      'an object mixed with a text',
      withTraits({ a: { type: ['object', 'string'] } }),
      /traits\.a mixes an object/,
    ],
    [
      'a list and a tuple',
      withTraits(
        {},
        { allOf: [{ properties: { a: { items: [text] } } }, { properties: { a: { items: text } } }] },
      ),
      /both as a list and as a tuple/,
    ],
    [
      'a back reference',
      withTraits({ a: { ...text, pattern: '(a)\\1' } }),
      /properties\/a: the pattern uses a back reference/,
    ],
    ['look-ahead', withTraits({ a: { ...text, pattern: '^(?=a)' } }), /look-ahead/],
    ['a broken pattern', withTraits({ a: { ...text, pattern: '(' } }), /is not a regular expression/],
    ['a huge pattern', withTraits({ a: { ...text, pattern: '((a{900}){900}){900}' } }), /repeats too much/],
    [
      'an unsafe name pattern',
      withTraits({ a: { patternProperties: { '(a)\\1': text } } }),
      /back reference/,
    ],
    [
      'ambiguous names',
      withTraits({ 'a.b': text, a: { properties: { b: text } } }),
      /"a\.b" and "a" make field names ambiguous/,
    ],
    ['an empty name', withTraits({ '': text }), /needs a name/],
    [
      '__proto__',
      () =>
        compileSchema(JSON.parse('{"properties":{"traits":{"properties":{"__proto__":{"type":"string"}}}}}')),
      /"__proto__"; rename/,
    ],
    [
      'more than 1 MiB',
      withTraits({ a: { ...text, description: 'x'.repeat(1024 * 1024) } }),
      /larger than 1 MiB/,
    ],
    [
      'an identifier in a list',
      withTraits({ a: { type: 'array', items: { ...text, 'x-identifier': true } } }),
      /traits|inside an array/,
    ],
    [
      'an identifier that is a number',
      withTraits({ a: { ...integer, 'x-identifier': true } }),
      /must stand on a string/,
    ],
  ]
  for (const [title, load, message] of cases) {
    t.throws(load, { constructor: SchemaError, message }, title)
  }
  t.end()
})

t.test('fields are found through references, branches and conditions', async t => {
  const schema = traitsSchema(
    { home: { $ref: '#/definitions/ad~1dress' }, work: { $ref: '#place' }, kind: { enum: ['p', 'c'] } },
    {
      allOf: [{ properties: { all: integer } }],
      anyOf: [{ properties: { any: integer } }, { properties: { other: integer } }],
      oneOf: [{ properties: { one: integer } }],
      dependencies: { kind: ['all'], one: { properties: { needed: integer }, required: ['needed'] } },
      ...JSON.parse(
        '{"if":{"properties":{"kind":{"const":"p"}}},"then":{"properties":{"met":{"type":"integer"}}},"else":{"properties":{"unmet":{"type":"integer"}}}}',
      ),
    },
    { definitions: { 'ad/dress': { $id: '#place', type: 'object', properties: { zip: integer } } } },
  )
  const names = ['home.zip', 'work.zip', 'all', 'any', 'other', 'one', 'needed', 'met', 'unmet']
  t.same(
    await submitEntries(
      schema,
      names.map(name => [`traits.${name}`, '7'] as const),
    ),
    {
      home: { zip: 7 },
      work: { zip: 7 },
      all: 7,
      any: 7,
      other: 7,
      one: 7,
      needed: 7,
      met: 7,
      unmet: 7,
    },
  )
  t.same(await submit(schema, 'traits.kind=x&traits.all=1'), ['traits.kind enum'])
  t.same(await submit(schema, 'traits.one=1'), ['traits.needed required'])
})

t.test('branches may narrow a type but an integer stays a number where both are named', async t => {
  const schema = traitsSchema(
    {
      n: { type: 'number' },
      u: { type: ['string', 'integer'] },
      nil: { anyOf: [integer, { type: 'null' }] },
    },
    { allOf: [{ properties: { n: integer, u: text } }] },
  )
  t.same(await submit(schema, 'traits.n=5&traits.u=5&traits.nil='), { n: 5, u: '5', nil: null })
  t.same(await submit(schema, 'traits.n=5.5'), ['traits.n type'])
})

t.test('a recursive schema is finite, and its paths may be as deep as a name may be long', async t => {
  const schema = traitsSchema(
    { tree: { $ref: '#/definitions/node' } },
    {},
    {
      definitions: {
        node: {
          type: 'object',
          properties: {
            n: integer,
            next: { $ref: '#/definitions/node' },
            all: { type: 'array', items: { $ref: '#/definitions/node' } },
          },
        },
      },
    },
  )
  const deep = `traits.tree.${'next.all.3.'.repeat(5)}n`
  t.match(await submitEntries(schema, [[deep, '1']]), { tree: { next: { all: [{ next: { all: Array } }] } } })
  t.same(await submitEntries(schema, [[`traits.tree.${'next.'.repeat(62)}n`, '1']]), {}, 'beyond 64 segments')
})

t.test('whatever its definitions refer to, a schema is refused or serves at once', async t => {
  const reference = fc.nat(3).map(n => ({ $ref: `#/definitions/d${n}` }))
  const leaf = fc.constant({ z: text })
  const properties = fc.oneof(leaf, fc.dictionary(fc.constantFrom('a', 'b'), reference, { minKeys: 1 }))
  const branch = fc.oneof(
    { weight: 1, arbitrary: reference },
    { weight: 40, arbitrary: properties.map(properties => ({ properties })) },
  )
  const branches = fc.array(branch, { minLength: 1, maxLength: 2 })
  const maybe = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { freq: 2, nil: undefined })
  const definition = fc.record({
    type: fc.constantFrom('object', ['object', 'null']),
    properties,
    required: maybe(fc.subarray(['a', 'b', 'z'])),
    allOf: maybe(branches),
    anyOf: maybe(branches),
    additionalProperties: maybe(reference),
    dependencies: maybe(fc.dictionary(fc.constantFrom('a', 'b'), branch)),
  })
  const deep = (levels: number): object => (levels === 0 ? {} : { a: deep(levels - 1), b: {}, z: {} })
  let served = 0
  await fc.assert(
    fc.asyncProperty(fc.array(definition, { minLength: 4, maxLength: 4 }), async made => {
      const definitions = Object.fromEntries(made.map((schema, n) => [`d${n}`, schema]))
      const start = performance.now()
      try {
        const schema = traitsSchema(
          { it: { $ref: '#/definitions/d0' } },
          { required: ['it'] },
          { definitions },
        )
        await submit(schema, 'x=1')
        await submit(schema, `traits.it.${'a.'.repeat(60)}b=1`)
        await submitJson(schema, { traits: { it: deep(60) } })
        buildNodes(schema, sentDefaults(schema.root), [])
        served++
      } catch (error) {
        if (!(error instanceof SchemaError)) throw error
      }
      return performance.now() - start < 2000
    }),
    { numRuns: 100 },
  )
  t.ok(served > 0 && served < 100, `${served} of 100 were served`)
})

t.test('a tree whose nodes are told apart by a branch is no circle', async t => {
  const node = { $ref: '#/definitions/node' }
  const branch = (kind: string, more: object) => ({
    required: ['kind', ...Object.keys(more)],
    properties: { kind: { const: kind }, ...more },
  })
  const schema = traitsSchema(
    { rule: node },
    {},
    {
      definitions: {
        node: {
          type: 'object',
          oneOf: [
            branch('both', { left: node, right: node }),
            branch('all', { of: { type: 'array', items: node } }),
            branch('is', { what: text }),
          ],
        },
      },
    },
  )
  const leaf = { kind: 'is', what: 'x' }
  const tree = (levels: number): object =>
    levels === 0 ? leaf : { kind: 'both', left: tree(levels - 1), right: { kind: 'all', of: [leaf] } }
  t.same(await submitJson(schema, { traits: { rule: tree(20) } }), { rule: tree(20) })
})

t.test('draft-07 is known by each of its spellings', async t => {
  for (const scheme of ['http', 'https']) {
    for (const end of ['', '#']) {
      const $schema = `${scheme}://json-schema.org/draft-07/schema${end}`
      t.same(await submit(traitsSchema({ a: integer }, {}, { $schema }), 'traits.a=5'), { a: 5 }, $schema)
    }
  }
})

t.test('property names may hold dots', async t => {
  const schema = traitsSchema({
    'a.b': { properties: { 'c.d': integer } },
    c: { properties: { 'a.b': text } },
  })
  t.same(await submit(schema, 'traits.a.b.c.d=1&traits.c.a.b=x'), { 'a.b': { 'c.d': 1 }, c: { 'a.b': 'x' } })
})

t.test('a compiled schema does not change with the object it came from', async t => {
  const properties: Record<string, object> = { a: { type: 'string' } }
  const schema = traitsSchema(properties)
  properties.a = integer
  t.same(await submit(schema, 'traits.a=5'), { a: '5' })
})

t.test('patterns answer as the native engine does', t => {
  const sources = [
    '^a+$',
    'a|b',
    '^(?:ab|cd)*$',
    '^[^@\\s]+@[^@]+$',
    '\\d{2,3}',
    '^\\p{L}+$',
    '^.{2}$',
    'x*',
    '^$',
    '^(a?){3}$',
    '[a-c]{0,2}d',
    '\\u{1F600}',
    '(?<word>b+)c',
    '^a$|^b',
    '\\.',
    '[\\]a]',
    '^(ab?)+?$',
    'a{2,}',
    '$',
    '(^a|b$)',
  ]
  const texts = fc.oneof(
    fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'd', '1', '@', ' ', '.', ']', 'ü', '😀') }),
    fc.string(),
  )
  for (const source of sources) {
    const pattern = new LinearPattern(source)
    const native = new RegExp(source, 'u')
    fc.assert(
      fc.property(texts, text => pattern.test(text) === native.test(text)),
      { numRuns: 200 },
    )
    t.pass(source)
  }
  t.end()
})

t.test('no pattern and no format takes long on a hostile text', async t => {
  const schema = traitsSchema({
    nested: { ...text, pattern: '^(a+)+$' },
    overlap: { ...text, pattern: '^(a|a)*b$' },
    search: { ...text, pattern: '\\s+$' },
    counted: { ...text, pattern: 'a{500}c' },
    email: { ...text, format: 'email' },
    uri: { ...text, format: 'uri' },
    tel: { ...text, format: 'tel' },
    date: { ...text, format: 'date-time' },
  })
  const long = 'a'.repeat(100_000)
  const values = {
    nested: `${long}!`,
    overlap: long,
    search: `${' '.repeat(100_000)}x`,
    counted: `${long}b`,
    email: `${long}@${long}.`,
    uri: `a://${long} `,
    tel: '1 '.repeat(50_000),
    date: `${'2'.repeat(100_000)}`,
  }
  const start = performance.now()
  const errors = await submitJson(schema, { traits: values })
  const took = performance.now() - start
  t.equal((errors as string[]).length, 8, 'each is refused by its own rule')
  t.ok(took < 2000, `${Math.round(took)} ms for 900 kB`)
})

t.test('a counted pattern takes no longer than it is allowed, whatever the text', async t => {
  let state = 1
  const coin = () => {
    state = (state * 48_271) % 0x7fffffff
    return state & 8 ? 'a' : 'b'
  }
  const coins = (count: number) => Array.from({ length: count }, coin).join('')
  const ideographs = Array.from({ length: 90_000 }, (_, n) => 0x4e00 + (n % 20_000))
  const cases: [string, JsonValue, RegExp][] = [
    ['[a-z\u00fc]{1,900}x$', '\u00fc'.repeat(500_000), /^traits\.it pattern$/],
    ['^.{1,1000}$', 'a'.repeat(1_000_000), /^traits\.it pattern$/],
    ['[\\p{L}\\d]{500}!$', String.fromCodePoint(...ideographs), /^traits\.it pattern$/],
    ['(a|b)*a(a|b){500}x$', coins(1_000_000), /^traits too_long$/],
    ['(a|b)*a(a|b){500}x$', Array.from({ length: 900 }, () => coins(1000)), /^traits too_long$/],
  ]
  for (const [pattern, it, expected] of cases) {
    const patterned = { ...text, pattern }
    const one = traitsSchema({ it: Array.isArray(it) ? { type: 'array', items: patterned } : patterned })
    const start = performance.now()
    t.match(String(await submitJson(one, { traits: { it } })), expected, pattern)
    const took = performance.now() - start
    t.ok(took < 4000, `${Math.round(took)} ms`)
    t.same(await submitJson(one, { traits: {} }), {}, 'the next document begins afresh')
  }
})

t.test('a megabyte of wrong values is refused quickly, with a bounded number of errors', async t => {
  const leaf = { anyOf: [integer, { type: 'null' }] }
  const schema = traitsSchema({
    rows: { type: 'array', items: { type: 'array', uniqueItems: true, items: leaf } },
  })
  const rows = Array.from({ length: 900 }, () => Array.from({ length: 250 }, (_, n) => String(n % 10)))
  const start = performance.now()
  const errors = await submitJson(schema, { traits: { rows } })
  const took = performance.now() - start
  t.equal((errors as string[]).length, 200)
  t.ok(took < 5000, `${Math.round(took)} ms`)
})
