/** Fields: one per line, a token, a colon, and a value without control bytes (RFC 9112 section 5). */
import fc from 'fast-check'
import t from 'tap'
import { fieldsOf, listHas, parseFields } from '../../../gateway/http1/fields.js'
import { lowerName } from '../../../gateway/http1/names.js'
import { allRefused, codeOf } from './wire-error.js'

const parse = (text: string): readonly string[] => parseFields(text, 0).raw

t.test('blanks around a value are dropped, and those within it are kept', async t => {
  t.same(parse('A: b\r\n'), ['A', 'b'])
  t.same(parse('A:b\r\n'), ['A', 'b'])
  t.same(parse('A: \t b  c\t d \t \r\n'), ['A', 'b  c\t d'])
  t.same(parse('A:\r\nB: \t \r\n'), ['A', '', 'B', ''])
})

t.test('a value may hold any byte but control characters, and a name only token characters', async t => {
  for (let code = 0; code < 256; code++) {
    const byte = String.fromCharCode(code)
    const isText = code === 9 || (code >= 32 && code !== 127)
    const isToken = /[!#$%&'*+.^_`|~0-9A-Za-z-]/.test(byte)
    const what = `byte ${code}`
    t.equal(
      codeOf(() => parse(`A: b${byte}c\r\n`)),
      isText ? undefined : 'bad-request',
      `${what} in a value`,
    )
    // A colon would end the name.
    if (byte !== ':') {
      t.equal(
        codeOf(() => parse(`A${byte}C: b\r\n`)),
        isToken ? undefined : 'bad-request',
        `${what} in a name`,
      )
    }
  }
})

t.test('an invalid field line is refused', async t => {
  allRefused(t, parse, {
    'a blank before the colon': 'A : b\r\n',
    'a tab before the colon': 'A\t: b\r\n',
    'a folded line': 'A: b\r\n c\r\n',
    'a line folded by a tab': 'A: b\r\n\tc\r\n',
    'a fold before the first field': ' A: b\r\n',
    'a line of blanks': 'A: b\r\n \r\n',
    'no name': ': b\r\n',
    'no colon': 'A\r\n',
    'an empty line': '\r\n',
    'LF alone': 'A: b\nC: d\r\n',
    'CR alone': 'A: b\rC: d\r\n',
    'CR before CRLF': 'A: b\r\r\n',
    NUL: 'A: \0\r\n',
    'no end': 'A: b',
    'half an end': 'A: b\r',
  })
})

t.test('a field is found behind three thousand others', async t => {
  const { raw, names } = parseFields(`${'a:b\r\n'.repeat(3000)}Host: c\r\n`, 0)
  t.equal(names.length, 3001)
  t.same([raw.at(-2), raw.at(-1), names.at(-1)], ['Host', 'c', 'host'])
})

t.test('field names are compared in lower case, whatever their spelling', async t => {
  for (const name of ['Content-Length', 'content-length', 'CONTENT-LENGTH', 'cOnTeNt-lEnGtH']) {
    t.equal(lowerName(name), 'content-length')
  }
  fc.assert(fc.property(fc.string(), name => lowerName(name) === name.toLowerCase()))
  for (const odd of ['constructor', '__proto__', '']) t.equal(lowerName(odd), odd)
  const fields = fieldsOf(['X-A', '1', 'set-COOKIE', 'b'])
  t.same(fields.names, ['x-a', 'set-cookie'])
  t.same(fields.raw, ['X-A', '1', 'set-COOKIE', 'b'])
})

t.test('a list option matches by whole word, in any case', async t => {
  for (const list of ['close', 'Close', 'x, close', 'close,x', ' ,\tCLOSE ,'])
    t.ok(listHas(list, 'close'), list)
  for (const list of ['', 'clos', 'closed', 'x-close', 'close x', '"close"'])
    t.notOk(listHas(list, 'close'), list)
})
