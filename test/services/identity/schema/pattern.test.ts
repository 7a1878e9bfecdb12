/** Patterns, formats and wrong values: the right result in bounded time. */
import fc from 'fast-check'
import t from 'tap'
import { LinearPattern } from '../../../../services/identity/schema/pattern.js'
import type { JsonValue } from '../../../../services/json.js'
import { cpuMs } from '../../../helpers/cpu-time.js'
import { tag } from '../decode/form-data.js'
import { rendered } from '../render/rendered.js'
import { submitJson, traitsSchema } from '../submit.js'

const text = { type: 'string' }
const integer = { type: 'integer' }

t.test('patterns match as in the native engine', t => {
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

t.test('a pattern in the form matches in a browser as it does in the schema', t => {
  const sources = [
    '^[a-z][\\w.-]+$',
    '[-a(){}/|]',
    '^[^-a]*$',
    '[a-c-]',
    '[a-b-d]$',
    '\\[-(\\d-)?',
    '[\\u0061-\\u0063-]{2}',
    '[\\]\\-b]',
    '[[]',
    '[\\p{L}-]+1',
  ]
  const units = fc.constantFrom('a', 'b', 'c', 'd', '1', '-', '(', '[', ']', '{', '/', '|', '.', 'ü', '\\')
  for (const source of sources) {
    const field = tag(rendered(traitsSchema({ it: { ...text, pattern: source } })), 'traits.it')
    const inBrowser = new RegExp(`^(?:${field?.pattern})$`, 'v')
    const native = new RegExp(source, 'u')
    fc.assert(
      fc.property(fc.string({ unit: units }), text => inBrowser.test(text) === native.test(text)),
      { numRuns: 200 },
    )
    t.pass(source)
  }
  const unreadable = rendered(traitsSchema({ it: { ...text, pattern: '[&&]' } }))
  t.equal(
    tag(unreadable, 'traits.it')?.pattern,
    undefined,
    'a pattern that browsers cannot parse is left to the server',
  )
  t.end()
})

t.test('patterns and formats take bounded time on hostile text', async t => {
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
  let errors: unknown
  const took = await cpuMs(async () => {
    errors = await submitJson(schema, { traits: values })
  })
  t.equal((errors as string[]).length, 8, 'each value is refused by its own rule')
  t.ok(took < 2000, `${Math.round(took)} ms for 900 kB`)
})

t.test('a counted pattern takes bounded time on any text', async t => {
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
    const took = await cpuMs(async () =>
      t.match(String(await submitJson(one, { traits: { it } })), expected, pattern),
    )
    t.ok(took < 4000, `${Math.round(took)} ms`)
    t.same(await submitJson(one, { traits: {} }), {}, 'the next document has the whole time again')
  }
})

t.test('a megabyte of wrong values is refused quickly, with a bounded number of errors', async t => {
  const leaf = { anyOf: [integer, { type: 'null' }] }
  const schema = traitsSchema({
    rows: { type: 'array', items: { type: 'array', uniqueItems: true, items: leaf } },
  })
  const rows = Array.from({ length: 900 }, () => Array.from({ length: 250 }, (_, n) => String(n % 10)))
  let errors: unknown
  const took = await cpuMs(async () => {
    errors = await submitJson(schema, { traits: { rows } })
  })
  t.equal((errors as string[]).length, 200)
  t.ok(took < 5000, `${Math.round(took)} ms`)
})
