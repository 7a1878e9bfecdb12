/** The fifteen rules of docs/forms.md: the examples written there, and what an example cannot show. */
import t from 'tap'
import { compileSchema, parseForm, SchemaError } from '../../../../services/identity/index.js'
import { importsOf } from '../../../helpers/imports.js'
import { projectFile } from '../../../helpers/root.js'
import { formData } from '../decode/form-data.js'
import { HTML, REGISTRATION, started } from '../started.js'
import { MULTIPART, multipart, submit, traitsSchema, URL_ENCODED } from '../submit.js'

const guide = projectFile('docs', 'forms.md')
const [, theRules = ''] = /\n## The fifteen rules\n(.*?)\n## /s.exec(guide) ?? []
const [, schemaText = ''] = /```json\n(.*?)```/s.exec(theRules) ?? []
const schema = compileSchema(JSON.parse(schemaText))

/** Each rule's number, title and examples as `body → result`. */
const rules = theRules
  .split('\n### ')
  .slice(1)
  .map(section => {
    const [, number, title] = /^(\d+)\. (.*)/.exec(section) ?? []
    const blocks = [...section.matchAll(/```form\n(.*?)```/gs)].map(([, lines]) => lines ?? '')
    const examples = blocks.flatMap(block => block.trim().split('\n')).map(line => line.split(/ +→ +/))
    return { number: Number(number), title, examples }
  })

/** A result as the guide writes it: errors in its notation, traits as they are. */
async function outcome(body: string): Promise<unknown> {
  const contentType = /^[{[]/.test(body) ? 'application/json' : URL_ENCODED
  const result = await parseForm(schema, { contentType, body })
  if ('traits' in result) return result.traits
  return `error ${result.errors.map(({ path, code }) => `${path || '""'} ${code}`).join(', ')}`
}

/** Further checks of a rule, besides its examples. */
const beyond: Record<number, (t: Tap) => Promise<void> | void> = {
  1: async t => {
    const body = 'traits.name=a'
    for (const type of [`${URL_ENCODED}; charset=shift_jis`, 'Application/X-WWW-Form-URLencoded']) {
      t.same(await submit(schema, body, type), { name: 'a' }, type)
    }
    t.same(await submit(schema, multipart([['traits.name', 'a']]), MULTIPART), { name: 'a' })
    for (const type of ['text/plain', '', 'multipart/mixed; boundary=XX']) {
      t.same(await submit(schema, body, type), [' unsupported_media_type'], type)
    }
    for (const end of ['', '--XX', '--YY--\r\n']) {
      t.same(await submit(schema, multipart([['traits.name', 'a']], end), MULTIPART), [' malformed'], end)
    }
  },
  2: t => {
    const recursive = {
      properties: { traits: { type: 'object', properties: { a: { $ref: '#/definitions/x' } } } },
    }
    const definitions = (x: object) => ({ ...recursive, definitions: { x } })
    const refused: [object, RegExp][] = [
      [definitions({ $ref: 'http://127.0.0.1:1/x.json' }), /must start with "#"/],
      [definitions({ $ref: 'file:///etc/passwd' }), /must start with "#"/],
      [definitions({ $ref: '#/definitions/y' }), /points to nothing/],
      [definitions({ $ref: '#/definitions/x' }), /leads back to itself/],
      [definitions({ allOf: [{ type: 'string' }, { type: 'number' }] }), /different types/],
      [definitions({ type: 'string', pattern: '(?=a)b' }), /look-ahead/],
      [definitions({ type: 'string', pattern: '(a)\\1' }), /back reference/],
      [definitions({ description: 'x'.repeat(1024 * 1024) }), /larger than 1 MiB/],
    ]
    for (const [document, message] of refused) {
      const attempt = () => compileSchema(document)
      t.throws(attempt, { constructor: SchemaError, message }, message.source)
    }
  },
  3: async t => {
    const odd = traitsSchema({ 'a"b': { type: 'string' }, 'a%41': { type: 'string' } })
    const parts = [
      ['traits.a%22b', '%22+'],
      ['traits.a%41', '1'],
    ] as const
    t.same(await submit(odd, multipart(parts), MULTIPART), { 'a"b': '%22+', 'a%41': '1' })
    t.equal(Object.hasOwn(Object.prototype, 'x'), false)
  },
  12: async t => {
    const file = (name: string, fileName: string, content: string) =>
      submit(schema, multipart([[`name="${name}"; filename="${fileName}"`, content]]), MULTIPART)
    t.same(await file('traits.name', 'a.png', 'png'), ['traits.name file'])
    t.same(await file('picture', 'a.png', 'png'), {})
    t.same(await file('traits.name', '', ''), {})
  },
  13: async t => {
    const body = 'traits.email=SECRET&traits.age=SECRET&traits.size=SECRET&traits.extra=SECRET'
    const result = await parseForm(schema, { contentType: URL_ENCODED, body })
    t.match(result, { errors: { length: 4 } })
    t.notMatch(JSON.stringify(result), /SECRET/)
  },
  14: async t => {
    const name = 'traits.name='
    t.same(await submit(schema, name + 'x'.repeat(1024 * 1024 - name.length)), ['traits.name maxLength'])
    t.same(await submit(schema, name + 'x'.repeat(1024 * 1024 - name.length + 1)), [' too_large'])
    t.same(await submit(schema, 'traits.tags=&'.repeat(5000)), { tags: [] })
    t.same(await submit(schema, 'traits.tags=&'.repeat(5001)), [' too_large'])
    const names = (count: number) => Array.from({ length: count }, (_, at) => `n${at}=`).join('&')
    t.same(await submit(schema, names(1000)), {})
    t.same(await submit(schema, names(1001)), [' too_large'])
    const nested = (depth: number) =>
      `{"traits":{"extra":${'{"a":'.repeat(depth - 3)}{}${'}'.repeat(depth - 1)}`
    t.type(await submit(schema, nested(64), 'application/json'), Object)
    t.notSame(await submit(schema, nested(64), 'application/json'), [' too_deep'])
    t.same(await submit(schema, nested(65), 'application/json'), [' too_deep'])
    const deep = traitsSchema({
      ['n'.repeat(505)]: { type: 'string' },
      ['m'.repeat(506)]: { type: 'string' },
    })
    const long = `traits.${'n'.repeat(505)}=1&traits.${'m'.repeat(506)}=1`
    t.same(await submit(deep, long), { ['n'.repeat(505)]: '1' })
  },
  15: async t => {
    const { call, json } = await started(t)
    const page = await call('GET', REGISTRATION, { accept: HTML })
    t.match(formData(page.text), [['csrf_token', String]])
    t.ok(formData(page.text).some(([name, value]) => name === 'traits.language' && value === 'en'))
    const traits = { email: 'a@x.example', name: { first: 'A' }, age: 3 }
    const path = (await json('POST', '/admin/identities', { traits })).header('location')
    t.same((await call('GET', path)).json().traits, traits, 'no default is stored')
    const patched = await json('PATCH', path, { traits: { age: null, name: { last: 'B' } } })
    t.same(patched.json().traits, { email: 'a@x.example', name: { first: 'A', last: 'B' } })
    const replaced = await json('PUT', path, { traits: { ...traits, age: 4 } })
    t.same(replaced.json().traits, { ...traits, age: 4 })
  },
}

type Tap = typeof t

t.same(
  rules.map(({ number }) => number),
  Array.from({ length: 15 }, (_, at) => at + 1),
  'the guide has the fifteen rules',
)
for (const { number, title, examples } of rules) {
  t.test(`rule ${number}: ${title}`, async t => {
    t.ok(examples.length > 0 || beyond[number], 'the rule has examples or further checks')
    for (const [body = '', expected = ''] of examples) {
      const wanted = expected.startsWith('error') ? expected : JSON.parse(expected)
      t.same(await outcome(body), wanted, body)
    }
    await beyond[number]?.(t as unknown as Tap)
  })
}

t.test('the parser accepts bytes and text, and imports no server or database package', async t => {
  const bodies = [
    'traits.name=\u00fc',
    Buffer.from('traits.name=\u00fc'),
    new TextEncoder().encode('traits.name=\u00fc'),
  ]
  for (const body of bodies) {
    t.same(await parseForm(schema, { contentType: URL_ENCODED, body }), { traits: { name: '\u00fc' } })
  }
  const files = new Set(['services/identity/index.ts'])
  const packages = new Set<string>()
  // The loop also visits files that are added on the way.
  for (const file of files) {
    for (const { target, own, manner } of importsOf(file, projectFile(file))) {
      if (manner === 'value') (own ? files : packages).add(target)
    }
  }
  t.same([...packages].sort(), ['@fastify/busboy', 'ajv', 'ajv-formats'])
})
