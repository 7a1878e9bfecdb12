import t from 'tap'
import { readForm } from '../../../../services/identity/decode/parse.js'
import type { CompiledSchema } from '../../../../services/identity/index.js'
import { sentDefaults, sentEntries } from '../../../../services/identity/render/sent.js'
import { formData, tag } from '../decode/form-data.js'
import { submit, submitEntries, traitsSchema, URL_ENCODED } from '../submit.js'
import { rendered } from './rendered.js'

const text = { type: 'string' }

/** The form as it is shown again after a submission. */
async function shownAgain(schema: CompiledSchema, body: string): Promise<string> {
  const { result, entries } = await readForm(schema, { contentType: URL_ENCODED, body: Buffer.from(body) })
  return rendered(schema, sentEntries(schema.root, entries), 'errors' in result ? result.errors : [])
}

t.test('each type of field has its own input, with the bounds of the schema', t => {
  const page = rendered(
    traitsSchema(
      {
        email: { ...text, format: 'email' },
        site: { ...text, format: 'uri' },
        phone: { ...text, format: 'tel' },
        day: { ...text, format: 'date' },
        moment: { ...text, format: 'date-time' },
        code: { ...text, minLength: 2, maxLength: 4, pattern: 'a|b' },
        age: { type: 'integer', exclusiveMinimum: 17.5, maximum: 99.5 },
        size: { type: 'number', minimum: 0.5 },
        news: { type: 'boolean' },
        terms: { const: true },
        level: { type: 'integer', enum: [1, 2], default: 2 },
        maybe: { type: ['boolean', 'null'] },
        free: { type: 'object' },
        town: { ...text, 'x-autocomplete': 'address-level2' },
        tongue: { enum: ['en', 'de'], 'x-autocomplete': 'language' },
      },
      { required: ['email', 'news', 'terms', 'maybe'] },
    ),
  )
  const cases: [string, Record<string, string | undefined>][] = [
    ['email', { type: 'email', required: '', autocomplete: 'email' }],
    ['site', { type: 'url', required: undefined }],
    ['phone', { type: 'tel' }],
    ['day', { type: 'date' }],
    ['moment', { type: 'text' }],
    ['code', { minlength: '2', maxlength: '8', pattern: '[\\s\\S]*(?:a|b)[\\s\\S]*' }],
    ['age', { type: 'number', step: '1', min: '18', max: '99' }],
    ['size', { type: 'number', step: 'any', min: '0.5' }],
    ['news', { type: 'checkbox', value: 'true', required: undefined }],
    ['terms', { type: 'checkbox', required: '' }],
    ['maybe', { type: undefined, required: undefined }],
    ['free', { rows: '4' }],
    ['town', { autocomplete: 'address-level2' }],
    ['tongue', { autocomplete: 'language' }],
  ]
  for (const [name, expected] of cases) t.match(tag(page, `traits.${name}`), expected, name)
  t.match(page, /<option value="2" selected="">2<\/option>/)
  t.match(
    page,
    /<input type="hidden" name="traits.news" value="false">\s*<input type="checkbox" id="traits.news"/,
  )
  const labelled = [...page.matchAll(/<label for="([^"]*)"/g)].map(([, id]) => id)
  t.ok(labelled.length >= cases.length)
  for (const id of labelled) t.ok(page.includes(` id="${id}"`), `the label of ${id} has its control`)
  t.end()
})

t.test('labels, choices and groups come from the schema, and everything is escaped', t => {
  const evil = '"><script>alert(1)</script>'
  const schema = traitsSchema({
    firstName: { ...text, description: evil },
    [evil]: { ...text, title: evil, default: evil },
    pick: { oneOf: [{ const: 'a', title: 'First & best' }, { const: 'b' }] },
    group: { title: 'The group', type: 'object', properties: { inner: text } },
  })
  const page = rendered(schema)
  t.match(page, />First Name</)
  t.match(page, /<option value="a">First &amp; best<\/option><option value="b">b<\/option>/)
  t.match(page, /<fieldset[^>]*>\s*<legend>The group<\/legend>/)
  t.notMatch(page, '<script')
  t.end()
})

t.test('a form with errors keeps the typed values and links to each field', async t => {
  const schema = traitsSchema(
    {
      age: { title: 'Age', type: 'integer' },
      name: { ...text, maxLength: 3 },
      tags: { type: 'array', items: { type: 'integer' } },
      on: { type: 'boolean' },
      terms: { title: 'Terms', const: true },
    },
    {
      required: ['name', 'email'],
      allOf: [{ properties: { email: { ...text, format: 'email' } } }],
    },
  )
  const page = await shownAgain(
    schema,
    'traits.terms=false&traits.age=12x&traits.on=false&traits.on=true&traits.tags.4=5&traits.tags.7=x&traits.email=%3Cb%3E',
  )
  t.match(tag(page, 'traits.age'), {
    value: '12x',
    type: 'text',
    'aria-invalid': 'true',
    'aria-describedby': 'traits.age-error',
  })
  t.match(page, /role="alert".*<a href="#traits.age">Age<\/a>: This has to be a whole number\./s)
  t.match(page, /<a href="#traits.terms">Terms<\/a>: This has to be accepted\./)
  t.match(page, /id="traits.age-error">This has to be a whole number\./)
  t.match(tag(page, 'traits.on'), { checked: '' })
  t.match(tag(page, 'traits.tags.0'), { value: '5' })
  t.match(
    tag(page, 'traits.tags.1'),
    { value: 'x', 'aria-invalid': 'true' },
    'rows are numbered as in the errors',
  )
  t.match(tag(page, 'traits.email'), { value: '<b>', 'aria-invalid': 'true' })
})

t.test('an error is shown in its own row, even after blank rows', async t => {
  const person = {
    type: 'object',
    required: ['name'],
    properties: { name: text, age: { type: 'integer' }, adult: { type: 'boolean' } },
  }
  const point = [
    { ...text, title: 'Latitude' },
    { title: 'Longitude', type: 'number' },
  ]
  const schema = traitsSchema({
    people: { type: 'array', items: person },
    point: { type: 'array', items: point, additionalItems: { type: 'integer' } },
  })
  const page = await shownAgain(
    schema,
    [
      'traits.people.0.name=&traits.people.0.age=&traits.people.0.adult=false',
      'traits.people.1.name=B&traits.people.1.age=x&traits.people.1.adult=false',
      'traits.point.0=&traits.point.1=2.5&traits.point.2=&traits.point.3=y',
    ].join('&'),
  )
  t.match(tag(page, 'traits.people.0.name'), { value: 'B' })
  t.match(tag(page, 'traits.people.0.age'), { value: 'x', 'aria-invalid': 'true' })
  t.match(tag(page, 'traits.people.1.name'), { value: '' }, 'one blank row follows')
  t.match(tag(page, 'traits.point.0'), { value: '', 'aria-invalid': 'true' })
  t.match(tag(page, 'traits.point.1'), { value: '2.5' }, 'the positions of a tuple are kept')
  t.match(tag(page, 'traits.point.2'), { value: 'y', 'aria-invalid': 'true' })
  t.match(page, />Longitude<\/label>/, 'a position with a title is labelled by it')
})

t.test('the default of a tuple is shown at its positions', async t => {
  const items = [{ type: ['integer', 'null'] }, { type: 'integer' }]
  const schema = traitsSchema({ it: { type: 'array', items, default: [null, 5] } })
  t.match(tag(rendered(schema), 'traits.it.1'), { value: '5' })
  t.same(await submitEntries(schema, formData(rendered(schema))), { it: [null, 5] })
})

t.test('fields without a native input have a hint about their format', t => {
  const dateTime = { ...text, format: 'date-time' }
  const page = rendered(
    traitsSchema({
      at: dateTime,
      own: { ...dateTime, description: 'In your own words' },
      extra: { type: 'object' },
    }),
  )
  t.match(page, /id="traits.at-hint">Such as 2001-12-31T14:30:00Z\.</)
  t.match(page, /id="traits.own-hint">In your own words</)
  t.match(page, /id="traits.extra-hint">JSON, such as \{&quot;key&quot;: &quot;value&quot;\}\.</)
  t.match(tag(page, 'traits.at'), { 'aria-describedby': 'traits.at-hint' })
  t.end()
})

t.test('a recursive schema gives a finite form', async t => {
  const node = {
    type: 'object',
    required: ['name'],
    properties: {
      name: text,
      child: { $ref: '#/definitions/node' },
      all: { type: 'array', items: { $ref: '#/definitions/node' } },
    },
  }
  const load = (rest: object = {}) =>
    traitsSchema({ root: { $ref: '#/definitions/node' } }, rest, { definitions: { node } })
  const schema = load()
  const page = rendered(schema)
  t.ok(tag(page, 'traits.root.all.0.name'), 'the list offers one blank row')
  t.ok(tag(page, 'traits.root.child.name'))
  t.notOk(tag(page, 'traits.root.child.child.name'))
  t.same(await submitEntries(schema, formData(page)), {}, 'the blank form gives no object')
  const value = {
    root: {
      name: 'a',
      child: { name: 'b', child: { name: 'c', all: [] }, all: [] },
      all: [{ name: 'd', all: [] }],
    },
  }
  t.same(await submitEntries(schema, formData(rendered(load({ default: value })))), value)
})

t.test('the page is at most 20 times as large as the submission', async t => {
  const names = Array.from({ length: 30 }, (_, n) => `c${n}`)
  const node = {
    type: 'object',
    properties: {
      ...Object.fromEntries(names.map(name => [name, { $ref: '#/definitions/node' }])),
      n: { type: 'integer' },
    },
  }
  const schema = traitsSchema({ it: { $ref: '#/definitions/node' } }, {}, { definitions: { node } })
  const places = names.flatMap(one => names.map(two => `traits.it.${one}.${two}.${'c1.'.repeat(55)}n`))
  const body = places.map(name => `${name}=x`).join('&')
  const page = await shownAgain(schema, body)
  t.ok(page.length < 20 * body.length, `${page.length} characters for ${body.length}`)
})

t.test('an untouched form with defaults submits the defaults', async t => {
  const schema = traitsSchema({
    flag: { type: 'boolean', default: true },
    name: { ...text, default: 'x' },
    deep: { type: 'object', properties: { n: { type: 'integer', default: 0 } } },
    tags: { type: 'array', items: text, default: ['a', 'b'] },
  })
  t.same(await submitEntries(schema, formData(rendered(schema))), {
    flag: true,
    name: 'x',
    deep: { n: 0 },
    tags: ['a', 'b'],
  })
  t.same(await submit(schema, ''), {}, 'a submission without fields gets no defaults')
})

t.test('a form shown again keeps the defaults of fields that were not sent, and the blanks that were', t => {
  const schema = traitsSchema({
    flag: { type: 'boolean', default: true },
    name: { ...text, default: 'x' },
    deep: {
      type: 'object',
      properties: { n: { type: 'integer', default: 7 }, m: { ...text, default: 'y' } },
    },
    tags: { type: 'array', items: text, default: ['a', 'b'] },
    age: { type: 'integer' },
  })
  const again = (sent: Record<string, string>) => {
    const entries = Object.entries(sent).map(([name, value]) => ({ name, text: value }))
    const page = rendered(schema, sentEntries(schema.root, entries, sentDefaults(schema.root)))
    const value = (name: string) => tag(page, `traits.${name}`)?.value
    return {
      flag: tag(page, 'traits.flag')?.checked !== undefined,
      tags: [value('tags.0'), value('tags.1')],
      ...{ name: value('name'), n: value('deep.n'), m: value('deep.m'), age: value('age') },
    }
  }
  const all = { flag: true, name: 'x', n: '7', m: 'y', tags: ['a', 'b'], age: '' }
  t.match(again({}), all)
  t.match(again({ 'traits.age': 'many' }), { ...all, age: 'many' })
  t.match(again({ 'traits.deep.n': '', 'traits.flag': 'false' }), { ...all, n: '', flag: false })
  t.match(again({ 'traits.name': '', 'traits.tags': 'c' }), { ...all, name: '', tags: ['c', ''] })
  t.end()
})
