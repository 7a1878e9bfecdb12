/** What a JSON-RPC request counts as, however it is written. */
import t from 'tap'
import { PEEK_BYTES } from '../../../gateway/decide/body-kind.js'
import { callsIn } from '../../../gateway/decide/json-rpc.js'
import type { Facts } from '../../../gateway/types.js'
import { randomOf } from '../../helpers/decision-lines.js'

const UNREADABLE = '(unreadable)'

const read = (body: string | Buffer, headers: Record<string, string> = {}, isLate = false) => {
  const facts = { header: (name: string) => headers[name] } as Partial<Facts> as Facts
  return callsIn(facts, Buffer.from(body as string), isLate)
}
const named = (body: string) => read(body).name
const batch = (length: number, call = '{"method":"a","id":1}') => `[${Array(length).fill(call).join()}]`

t.test('a call counts by its method, and that of a tool by the tool', async t => {
  t.match(read('{"jsonrpc":"2.0","id":7,"method":"ping"}'), { name: 'ping', count: 1, ids: ['7'] })
  t.equal(named('{"method":"ping","params":{"name":"search"}}'), 'ping')
  t.equal(
    named('{"method":"tools/call","params":{"name":"search","arguments":{"name":"x"}}}'),
    'tools/call:search',
  )
  t.equal(
    named('{"params":{"arguments":{"method":"a"},"name":"search"},"method":"tools/call"}'),
    'tools/call:search',
  )
  t.equal(named('{"method":"tools\\u002fcall","params":{"n\\u0061me":"se\\u0061rch"}}'), 'tools/call:search')
})

t.test('what upstreams may read in different ways shares one counter', async t => {
  const bodies = {
    'no body': '',
    'no JSON': 'method=ping',
    'cut off': '{"method":"ping"',
    'more than JSON': '{"method":"ping"} {}',
    'a byte order mark': '\uFEFF{"method":"ping"}',
    'a scalar': '"ping"',
    'no method': '{"id":1,"result":{}}',
    'a method that is no text': '{"method":["ping"]}',
    'an empty method': '{"method":" "}',
    'two methods': '{"method":"ping","method":"pong"}',
    'two methods, one in capitals': '{"method":"ping","METHOD":"pong"}',
    'two methods, one escaped': '{"method":"ping","m\\u0065thod":"pong"}',
    'a tool without a name': '{"method":"tools/call","params":{}}',
    'a tool without parameters': '{"method":"tools/call"}',
    'parameters by position': '{"method":"tools/call","params":["search"]}',
    'two tools': '{"method":"tools/call","params":{"name":"a","name":"b"}}',
    'two tools, in two maps': '{"method":"tools/call","params":{"name":"a"},"params":{"name":"b"}}',
    'two tools, with a letter that Go folds':
      '{"method":"tools/call","params":{"name":"a"},"paramſ":{"name":"b"}}',
    'a method that ends at NUL': '{"method":"ping\\u0000x"}',
    'half of a surrogate pair': '{"method":"ping\\ud800"}',
    'a long method': JSON.stringify({ method: 'm'.repeat(257) }),
    'deep nesting': `{"method":"ping","params":${'['.repeat(200)}${']'.repeat(200)}}`,
    'as deep as it gets': `{"method":"ping","params":${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
  }
  for (const [what, body] of Object.entries(bodies)) {
    t.match(read(body), { name: UNREADABLE, count: 1, ids: undefined }, what)
  }
  const latin1 = Buffer.from('{"method":"p\xEFng"}', 'latin1')
  t.match(read(latin1), { name: UNREADABLE, count: 1 }, 'bytes that are no UTF-8')
  t.match(read('{"method":"a"', {}, true), { name: UNREADABLE, count: 1 }, 'a late body')
  const long = JSON.stringify({ method: 'a', params: 'x'.repeat(PEEK_BYTES) }).slice(0, PEEK_BYTES)
  t.match(read(long), { name: UNREADABLE, count: 1 }, 'a long body')
})

t.test('a batch costs its length', async t => {
  t.match(read(batch(3)), { name: 'a', count: 3, isBatch: true, ids: ['1', '1', '1'] })
  t.match(read('[{"method":"a"},{"method":"b","id":null}]'), { name: '(batch)', count: 2, ids: ['null'] })
  t.match(read(batch(1000, '{"method":"a"}')), { name: 'a', count: 1000, ids: [] })
  t.match(read('[]'), { name: UNREADABLE, count: 1 })
  t.match(read(' [{"method":"a"},{"method":"b"},7]'), { name: UNREADABLE, count: 3 }, 'a call that is none')
})

t.test('a batch that cannot be read costs as much as the longest', async t => {
  const most = { name: UNREADABLE, count: 1000 }
  t.match(read(batch(1001, '{"method":"a"}')), most)
  t.match(read(batch(10_000).slice(0, PEEK_BYTES)), most)
  t.match(read('[{"method":"a"},', {}, true), most, 'late')
  t.match(read(' '.repeat(PEEK_BYTES)), most, 'it may begin behind what is read')
  for (const late of ['', ' \n', '\uFEFF']) t.match(read(late, {}, true), most, 'or later')
  t.match(read('', {}), { name: UNREADABLE, count: 1 }, 'but not behind the end')
  t.match(read('\uFEFF[{"method":"a"}]'), most)
  t.match(read(Buffer.from('[{"method":"a"}]', 'utf16le')), most)
  t.match(read('[{"method":"a"}]', { 'content-encoding': 'gzip' }), most)
})

t.test('an id is kept as it is written, unless it is none', async t => {
  const idOf = (id: string) => read(`{"method":"a","id": ${id} }`).ids
  for (const id of ['12345678901234567890', '1.50', '-1e3', '""', '"a\\"}"', 'null']) t.same(idOf(id), [id])
  for (const id of ['{}', '[1]', 'true', `"${'x'.repeat(256)}"`]) t.same(idOf(id), ['null'], id)
  t.same(read('{"method":"a","id":1,"id":2}').ids, ['null'])
  t.same(read('{"method":"a"}').ids, [])
})

t.test('property: every spelling of a call counts in the same counter', async t => {
  const random = randomOf(29)
  const pick = (n: number) => Math.floor(random() * n)
  const blank = () => ['', ' ', '\n', '\t\r\n'][pick(4)] as string
  const escaped = (text: string) =>
    [...text].map(c => (pick(3) > 0 ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)).join('')
  const cased = (text: string) => [...text].map(c => (pick(3) > 0 ? c : c.toUpperCase())).join('')
  const text = (value: string) => `"${escaped(cased(value))}"`
  const others = ['"id":[{"method":"x"}]', '"jsonrpc":"2.0"', '"x":"\\"method\\":"', '"_meta":{"name":["}"]}']
  const object = (members: string[]) => {
    const all = [...members, ...others.filter(() => pick(2) > 0)].sort(() => random() - 0.5)
    return `{${blank()}${all.join(`${blank()},${blank()}`)}${blank()}}`
  }
  const member = (name: string, value: string) => `${text(name)}${blank()}:${blank()}${value}`
  for (let i = 0; i < 300; i += 1) {
    const name = member('name', text('search'))
    const params = member('params', object(pick(2) > 0 ? [name, name] : [name]))
    const body = blank() + object([member('method', text('tools/call')), params]) + blank()
    if (named(body) !== 'tools/call:search') return t.equal(named(body), 'tools/call:search', body)
  }
})

t.test('reading takes linear time', async t => {
  const hostile = [
    `{${'"a":1,'.repeat(10_000)}"method":"a"}`,
    `{${'"\\u0061":1,'.repeat(5900)}"method":"a"}`,
    `{${'"method":"a",'.repeat(5000)}"method":"a"}`,
    `[${'{},'.repeat(21_000)}{}]`,
    `{"method":"${'\\u0061'.repeat(10_000)}"}`,
  ]
  for (const body of hostile) {
    t.ok(body.length < PEEK_BYTES)
    const before = performance.now()
    read(body)
    t.ok(performance.now() - before < 100, body.slice(0, 20))
  }
})
