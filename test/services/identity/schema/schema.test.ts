/** Where a schema's fields are found, and what kind they are. */
import t from 'tap'
import { submit, submitEntries, submitJson, traitsSchema } from '../submit.js'

const text = { type: 'string' }
const integer = { type: 'integer' }

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

t.test('a branch may narrow a type, and an integer narrows a number', async t => {
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

t.test('a recursive schema accepts names of up to 64 segments', async t => {
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
  t.same(
    await submitEntries(schema, [[`traits.tree.${'next.'.repeat(62)}n`, '1']]),
    {},
    'a name beyond 64 segments is ignored',
  )
})

t.test('a recursive oneOf selected by a fixed value is accepted', async t => {
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

t.test('each spelling of the draft-07 address is accepted', async t => {
  for (const scheme of ['http', 'https']) {
    for (const end of ['', '#']) {
      const $schema = `${scheme}://json-schema.org/draft-07/schema${end}`
      t.same(await submit(traitsSchema({ a: integer }, {}, { $schema }), 'traits.a=5'), { a: 5 }, $schema)
    }
  }
})

t.test('property names may contain dots', async t => {
  const schema = traitsSchema({
    'a.b': { properties: { 'c.d': integer } },
    c: { properties: { 'a.b': text } },
  })
  t.same(await submit(schema, 'traits.a.b.c.d=1&traits.c.a.b=x'), { 'a.b': { 'c.d': 1 }, c: { 'a.b': 'x' } })
})

t.test('a compiled schema is not affected by changes to its source object', async t => {
  const properties: Record<string, object> = { a: { type: 'string' } }
  const schema = traitsSchema(properties)
  properties.a = integer
  t.same(await submit(schema, 'traits.a=5'), { a: '5' })
})

t.test('a schema that calls itself asynchronous is checked like any other', async t => {
  const schema = traitsSchema({ name: { type: 'string', maxLength: 1 } }, {}, { $async: true })
  const errors = await submitJson(schema, { traits: { name: 'long' } })
  t.same(errors, ['traits.name maxLength'])
})
