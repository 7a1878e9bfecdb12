/** Schemas that are rejected when they are loaded. */
import fc from 'fast-check'
import t from 'tap'
import { compileSchema, SchemaError } from '../../../../services/identity/index.js'
import { buildNodes } from '../../../../services/identity/render/nodes.js'
import { sentDefaults } from '../../../../services/identity/render/sent.js'
import { submit, submitJson, traitsSchema } from '../submit.js'

const text = { type: 'string' }
const integer = { type: 'integer' }

/** Loads traits with one property `it`, and definitions d0 to d`count`, each of which may refer to the next. */
const defined = (it: object, count: number, make: (next: string) => object) => () => {
  const made = Array.from({ length: count }, (_, n) => [`d${n}`, make(`#/definitions/d${n + 1}`)] as const)
  return traitsSchema({ it }, {}, { definitions: Object.fromEntries([...made, [`d${count}`, text]]) })
}
const manyRows = (items: object) => ({ type: 'array', minItems: 1000, items })

t.test('an unusable schema is refused when it loads, with a message that names the problem', t => {
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
      /"#\/definitions\/nope" points to nothing/,
    ],
    ['an inherited name as $ref', withTraits({ a: { $ref: '#/constructor' } }), /points to nothing/],
    [
      'a circle of $ref',
      () =>
        traitsSchema(
          { a: { $ref: '#/definitions/a' } },
          {},
          { definitions: { a: { $ref: '#/definitions/b' }, b: { allOf: [{ $ref: '#/definitions/a' }] } } },
        ),
      /leads back to itself/,
    ],
    [
      'a circle of dependencies',
      withTraits({}, { dependencies: { a: { $ref: '#/properties/traits' } } }),
      /leads back to itself/,
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
      'a form of a billion rows',
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

t.test('a schema with any references between definitions is refused or serves quickly', async t => {
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

t.test('an object that requires itself can never be filled in, and costs no more than others', async t => {
  const itself = { $ref: '#/definitions/d0' }
  const schema = defined(itself, 1, () => ({
    ...{ type: 'object', required: ['a', 'b'], properties: { a: itself, b: itself, note: text } },
  }))()
  const missing = (await submit(schema, 'traits.it.a.note=x')) as string[]
  t.ok(missing.length > 0 && missing.length < 50)
  t.ok(missing.every(problem => /^traits\.it\.[ab.]+ required$/.test(problem)))
  t.ok(buildNodes(schema, sentDefaults(schema.root), []).length > 0)
})
