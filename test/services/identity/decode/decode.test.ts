/** From a body to the names in it: media types, encodings, limits (rules 1, 3, 12 and 14). */
import t from 'tap'
import { parseForm } from '../../../../services/identity/index.js'
import { everyKind as schema, text, wrong } from '../every-kind.js'
import { MULTIPART, multipart, submit, submitEntries, traitsSchema } from '../submit.js'

t.test(
  'media types are recognised in any letter case and with parameters, and others are refused',
  async t => {
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
  },
)

t.test('a malformed body gives one error for the whole document', async t => {
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

t.test('a large part without a name is skipped, and the form is answered', async t => {
  for (const head of ['A: b', 'Content-Disposition: attachment', 'Content-Disposition: form-data']) {
    const nameless = `--XX\r\n${head}\r\n\r\n${'x'.repeat(1_000_000)}\r\n`
    const body = nameless + multipart([['traits.text', 'a']])
    t.same(await submit(schema, body, MULTIPART), { text: 'a' }, head)
  }
})

t.test('a boundary may be quoted, and an invalid one is refused', async t => {
  const body = multipart([['traits.text', 'a']])
  const good = ['BOUNDARY=XX', 'boundary="XX"', 'charset=x; boundary=XX ; y=z', 'boundary=XX; boundary=YY']
  for (const end of good) {
    t.same(await submit(schema, body, `multipart/form-data;${end}`), { text: 'a' }, end)
  }
  const spaced = body.replaceAll('--XX', '--X X')
  t.same(await submit(schema, spaced, 'multipart/form-data; boundary="X X"'), { text: 'a' })
  const bad = ['=', '=""', '="XX', '=X X', '=X\\X', '=XX"', '=Ü', `=${'X'.repeat(71)}`, '*=XX']
  for (const end of bad) {
    t.same(await submit(schema, body, `multipart/form-data; boundary${end}`), [' malformed'], end)
  }
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

t.test('multipart names are unescaped only as browsers escape them, and values are literal', async t => {
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
  const latin = Buffer.from(strange.replace('bogus', 'iso-8859-1'), 'latin1')
  t.same(await submit(schema, latin, MULTIPART), { text: 'ü' }, 'a part may name its own charset')
})

t.test('a file sent for a trait is refused, and other or empty files are ignored', async t => {
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

t.test('names that are not in the schema are ignored', async t => {
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

t.test('names of object prototypes have no effect, unless the schema declares them', async t => {
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

t.test('the bytes, entries, names and depth of a body are limited', async t => {
  t.same(await submit(schema, `traits.text=${'x'.repeat(1024 * 1024)}`), [' too_large'])
  t.same(await submit(schema, 'traits.tags=&'.repeat(5001)), [' too_large'])
  t.same(await submit(schema, 'traits.tags=&'.repeat(5000)), { tags: [] })
  const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index}=`).join('&')
  t.same(await submit(schema, names(1001)), [' too_large'])
  t.same(await submit(schema, names(1000)), {})
  const parts = Array.from({ length: 5001 }, () => ['traits.tags', 'x'] as const)
  t.same(await submit(schema, multipart(parts), MULTIPART), [' too_large'])
  const idle = '--XX\r\n'.repeat(100_000)
  t.same(await submit(schema, idle, MULTIPART), [' too_large'], 'boundaries without a part count as entries')
  const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
  t.same(await submit(schema, `{"traits":{"extra":{"a":${deep(62)}}}}`, 'application/json'), [' too_deep'])
  t.same(await submit(schema, `{"x":${deep(400_000)}}`, 'application/json'), [' too_deep'])
  t.same(await submitEntries(schema, [['traits.extra', `{"a":${deep(70)}}`]]), wrong('extra', 'too_deep'))
})
