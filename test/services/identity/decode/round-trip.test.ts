import fc from 'fast-check'
import t from 'tap'
import type { JsonObject, JsonValue } from '../../../../services/json.js'
import { rendered } from '../render/rendered.js'
import { MULTIPART, multipart, submit, submitEntries, traitsSchema } from '../submit.js'
import { formData } from './form-data.js'

/** Longer runs: ROUND_TRIPS=5000. */
const RUNS = Number(process.env.ROUND_TRIPS ?? 100)

interface Generated {
  schema: JsonObject
  value: JsonValue
}

/** A property's name: anything a browser can send, except the dot that separates names. */
const propertyName = fc
  .oneof(
    fc.string({ minLength: 1, maxLength: 8 }),
    fc.constantFrom('constructor', 'toString', 'é ü', '0', 'a"b', '%22', '+'),
  )
  .map(name => name.replaceAll('.', '_'))
  .filter(name => name !== '__proto__')
const word = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
  .filter(word => !/[\r\n\0]/.test(word))
const anyNumber = fc
  .double({ noNaN: true, noDefaultInfinity: true })
  .map(number => (number === 0 ? 0 : number))

const dayOf = (day: number) => new Date(day * 86_400_000).toISOString().slice(0, 10)

const leaf = (schema: JsonObject, value: fc.Arbitrary<JsonValue>): fc.Arbitrary<Generated> =>
  value.map(value => ({ schema, value }))

const scalars = [
  leaf({ type: 'string' }, word),
  leaf({ type: 'integer' }, fc.maxSafeInteger()),
  leaf({ type: 'number' }, anyNumber),
  leaf({ type: 'boolean' }, fc.boolean()),
  leaf(
    { type: ['string', 'boolean'] },
    fc.oneof(
      fc.boolean(),
      word.map(word => `x${word}`),
    ),
  ),
  leaf({ enum: ['a', 1, true, [1], { b: 2 }] }, fc.constantFrom<JsonValue>('a', 1, true, [1], { b: 2 })),
  leaf({ oneOf: [{ const: 'a', title: 'First' }, { const: 2 }] }, fc.constantFrom<JsonValue>('a', 2)),
  leaf({ type: 'string', enum: ['', 'a', 'b'] }, fc.constantFrom('a', 'b')),
  leaf({ type: 'string', format: 'date' }, fc.nat(20_000).map(dayOf)),
  leaf({ type: 'object' }, fc.dictionary(propertyName, fc.oneof(word, fc.integer(), fc.constant(null)))),
]
const nullable = fc.oneof(
  leaf({ type: ['integer', 'null'] }, fc.option(fc.integer())),
  leaf({ type: ['string', 'null'] }, fc.option(word)),
  leaf({ type: ['boolean', 'null'] }, fc.option(fc.boolean())),
)

/** A row with only blank fields is left out by design. */
const isBlank = (value: JsonValue): boolean =>
  value === null || (typeof value === 'object' && Object.values(value).every(isBlank))

const tuple = fc
  .array(fc.oneof(...scalars, nullable), { minLength: 1, maxLength: 3 })
  .filter(items => !isBlank(items.map(({ value }) => value)))
  .map(items => ({
    schema: {
      type: 'array',
      items: items.map(({ schema }) => schema),
      additionalItems: false,
      minItems: items.length,
    },
    value: items.map(({ value }) => value),
  }))

const { object } = fc.letrec<{ object: Generated; array: Generated; any: Generated }>(tie => ({
  any: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    ...scalars,
    nullable,
    tuple,
    tie('object'),
    tie('array'),
  ),
  object: fc
    .dictionary(propertyName, tie('any'), { minKeys: 1, maxKeys: 4, noNullPrototype: true })
    .map(children => ({
      schema: {
        type: 'object',
        required: Object.keys(children),
        properties: Object.fromEntries(Object.entries(children).map(([name, child]) => [name, child.schema])),
      },
      value: Object.fromEntries(Object.entries(children).map(([name, child]) => [name, child.value])),
    })),
  array: fc
    .oneof(
      ...scalars,
      tie('object').filter(({ value }) => !isBlank(value)),
    )
    .chain(({ schema, value }) =>
      fc.integer({ min: 0, max: 4 }).map(length => ({
        schema: { type: 'array', items: schema },
        value: Array.from({ length }, () => value),
      })),
    ),
}))

/** An equivalent schema in other common forms: with references, in allOf, in a branch of its own. */
function reworded(schema: JsonObject, manners: readonly number[]) {
  const definitions: JsonObject = {}
  let turn = 0
  function again(given: JsonValue): JsonValue {
    const { properties, items, ...rest } = given as JsonObject
    const inner: JsonObject = {
      ...rest,
      ...(properties ? { properties: mapped(properties as JsonObject) } : {}),
      ...(items ? { items: Array.isArray(items) ? items.map(again) : again(items) } : {}),
    }
    const manner = manners[turn++ % manners.length]
    if (manner === 1) {
      const name = `d/~ ${turn}`
      definitions[name] = inner
      return { $ref: `#/definitions/d~1~0%20${turn}` }
    }
    if (manner === 2) return { title: 'Told apart', allOf: [inner] }
    if (manner === 3 && !properties && !items) return { anyOf: [inner] }
    if (manner === 4 && properties) {
      const { required, ...open } = inner
      return { allOf: [open, { required: required ?? [] }] }
    }
    return inner
  }
  const mapped = (properties: JsonObject) =>
    Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, again(inner)]))
  return { schema: again(schema), definitions }
}

const manners = fc.array(fc.nat(4), { minLength: 1, maxLength: 12 })

t.test('submitting a shown form gives the same value, url-encoded and as multipart', async t => {
  t.setTimeout(30_000 + 50 * RUNS)
  await fc.assert(
    fc.asyncProperty(object, manners, async ({ schema: plain, value }, manners) => {
      const { schema: traits, definitions } = reworded(plain, manners)
      const rest = { required: ['it'], default: { it: value } }
      const schema = traitsSchema({ it: traits }, rest, { definitions })
      const entries = formData(rendered(schema))
      t.same(await submitEntries(schema, entries), { it: value })
      const escaped = entries.map(([name, text]): [string, string] => [name.replaceAll('"', '%22'), text])
      const parts = escaped.map(([name, text]): [string, string] => [`name="${name}"`, text])
      if (!entries.some(([name, text]) => /%22|\\/.test(name) || text.includes('--XX'))) {
        t.same(await submit(schema, multipart(parts), MULTIPART), { it: value })
      }
      return t.passing()
    }),
    { numRuns: RUNS },
  )
})
