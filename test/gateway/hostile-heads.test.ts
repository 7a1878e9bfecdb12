/** What reading the head of a request, or its TLS greeting, costs at most: each reader at the largest head there is. */
import t from 'tap'
import { announcedTrailers } from '../../gateway/forward/trailers.js'
import { listHas } from '../../gateway/http1/fields.js'
import { parseRequestHead } from '../../gateway/http1/request-head.js'
import { path } from '../../gateway/identify/path.js'
import { clientAddress, TrustedProxies } from '../../gateway/listen/client.js'
import { createCredentials } from '../../gateway/listen/credentials.js'
import { hostOf, readFacts } from '../../gateway/listen/facts.js'
import { fingerprintsOf } from '../../gateway/listen/fingerprint.js'
import { isAuthority } from '../../gateway/listen/head-rules.js'
import { MAX_HEAD } from '../../gateway/listen/limits.js'
import { normalizePath } from '../../gateway/listen/path.js'
import { parseTarget } from '../../gateway/listen/target.js'
import { Fields, type RequestHead } from '../../gateway/message.js'
import { Redactor } from '../../gateway/observe/redact.js'
import { openOtel } from '../../gateway/observe/tracing/otel.js'
import { parsePattern } from '../../gateway/policy/pattern.js'
import { PathTrie } from '../../gateway/policy/trie.js'
import { hostileTexts, slowInputs } from '../helpers/hostile.js'

const trusted = new TrustedProxies(['0.0.0.0/0', '::/0'])

function headWith(given: Partial<RequestHead>, ...fields: [string, string][]): RequestHead {
  const all: [string, string][] = [['host', 'acme.localhost'], ...fields]
  return {
    id: 'request',
    method: 'GET',
    target: '/',
    version: '1.1',
    fields: new Fields(
      all.flat(),
      all.map(([name]) => name),
    ),
    upgrade: false,
    peer: { address: '192.0.2.1', localPort: 8080, encrypted: false, fingerprints: undefined },
    ...given,
  }
}

t.test('a head of any bytes costs little', async t => {
  const starts = ['', 'GET ', 'GET / HTTP/1.1\r\n', 'GET / HTTP/1.1\r\nA', 'GET / HTTP/1.1\r\nA:']
  const texts = hostileTexts(MAX_HEAD, {
    starts,
    ends: ['', '\r\n'],
    more: ['a:\r\n', 'a: b\r\n', 'A:,\r\n'],
  })
  t.same(await slowInputs(texts, parseRequestHead), [])
})

t.test('a path or target of any characters costs little', async t => {
  const more = ['/.', '/a', '/a/..', '/../', '%2e', '%', '%4', '/%2e%2e', 'a.', '/;', '//a']
  const texts = hostileTexts(MAX_HEAD, {
    starts: ['/', '/a?', '', 'http://', 'http://a', 'https://a/'],
    more,
  })
  t.same(await slowInputs(texts, text => parseTarget('GET', text)), [])
  t.same(await slowInputs(texts, normalizePath), [])
})

t.test('a path of thousands of segments costs little, whoever reads it', async t => {
  const patterns = new PathTrie<string>()
  for (const text of ['*', '/a/**', '/{a}/*/a', '/{a}/{b}/{c}/{d}/b', '/*/*/*/*/c', 'GET /a/a/a/a/d'])
    patterns.add(parsePattern(text), text)
  const project = { plan: 'growth', environment: 'production', hosts: [], apiKeyHashes: [] }
  const projects = ['/a', '/a/a/a/a/a/b', '/'].map(one => ({ ...project, id: one, paths: [one] }))
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const { identify } = path.create({}, { log, plans: [], environments: [], folder: '.', projects })
  const redactor = new Redactor(Buffer.from('secret'), new Set(['a']))
  const numbered = Array.from({ length: MAX_HEAD }, (_, i) => `/${i.toString(36)}`).join('')
  const paths = [...['/a', '/b', '/a/b', '/;'].map(one => one.repeat(MAX_HEAD / one.length)), numbered]
  for (const [name, read] of Object.entries({
    patterns: (text: string) => patterns.findAll('GET', text),
    project: (text: string) => identify({ path: text } as never),
    log: (text: string) => redactor.path(text, '/{id}/**'),
  })) {
    t.same(
      await slowInputs(
        paths.map(text => text.slice(0, MAX_HEAD)),
        read,
      ),
      [],
      name,
    )
  }
})

t.test('a host of any characters costs little', async t => {
  const texts = hostileTexts(MAX_HEAD, {
    starts: ['', '[', 'a:', 'a.'],
    more: ['a.', ':1', '::', '.:', 'xn--'],
  })
  t.same(await slowInputs(texts, text => [isAuthority(text), hostOf(text)]), [])
})

t.test('a list of forwarded addresses of any characters costs little', async t => {
  const more = ['1.2.3.4,', ',', '[::1]:1,', '::1,', '::ffff:1.2.3.4, ', '1:', 'f:', '0', '[', '1.']
  const texts = hostileTexts(MAX_HEAD, { starts: ['', '['], ends: ['', ',x', ',1.2.3.4', ']'], more })
  t.same(await slowInputs(texts, text => clientAddress('192.0.2.1', text, trusted)), [])
})

t.test('cookies of any characters cost little, whatever names are looked for', async t => {
  const hasCredential = createCredentials({
    headers: ['authorization'],
    cookies: ['*session*', 's*e*s*s*', '*a*a*a*b'],
  })
  const more = ['a=;', 's=1;', 'session', 'a', 'ses=', '=;', ';']
  const texts = hostileTexts(MAX_HEAD, { starts: ['', 'session'], ends: ['', '=', '=x'], more })
  t.same(await slowInputs(texts, text => hasCredential(headWith({}, ['cookie', text]).fields)), [])
  const many = Array.from({ length: MAX_HEAD / 8 }, (): [string, string] => ['cookie', 'a='])
  t.same(await slowInputs([many], fields => hasCredential(headWith({}, ...fields).fields)), [])
})

t.test('a field of any characters costs the reading of the facts little', async t => {
  const settings = {
    trusted,
    fingerprintHeaders: { ja3: 'x-ja3', ja4: 'x-ja4' },
    credentialIn: createCredentials({ headers: [], cookies: ['*session'] }),
  }
  for (const name of ['x-forwarded-for', 'x-ja3', 'cookie', 'expect', 'connection', 'te', 'origin']) {
    const heads = hostileTexts(MAX_HEAD - 100).map(text => headWith({}, [name, text]))
    const read = (head: RequestHead) => {
      const { ja3, ja4, authenticated, network, preflight } = readFacts(head, settings)
      return [ja3, ja4, authenticated, network, preflight]
    }
    t.same(await slowInputs(heads, read), [], name)
  }
})

t.test('options and announced trailers of any characters cost little', async t => {
  const texts = hostileTexts(MAX_HEAD, { more: ['close,', 'clos', 'a,', ', ,'] })
  t.same(await slowInputs(texts, text => [listHas(text, 'close'), listHas(text, 'trailers')]), [])
  const trailers = Array.from({ length: MAX_HEAD / 4 }, (_, i) => (i % 2 === 0 ? `a${i}` : ''))
  const heads = { fateOf: () => 'passes' } as never
  const announced = (text: string) =>
    announcedTrailers(trailers, headWith({}, ['trailer', text]).fields, heads)
  t.same(await slowInputs(texts, announced), [])
})

t.test('trace fields of any characters cost little', async t => {
  const log = { info() {}, warn() {}, error() {} } as never
  const tracing = openOtel({ otlp: 'http://127.0.0.1:9', share: 0, version: '1' }, log)
  t.teardown(() => tracing.close())
  const parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const texts = hostileTexts(MAX_HEAD, {
    starts: ['', 'a='],
    more: ['a=b,', 'a@b=c,', 'a=b, ', '00-', '-', 'a@'],
  })
  const read = (name: string) => (text: string) => {
    const fields: [string, string][] = name === 'tracestate' ? [['traceparent', parent]] : []
    const head = headWith({}, ...fields, [name, text])
    return tracing.begin(head, {} as never).forward(head.fields)
  }
  for (const name of ['traceparent', 'tracestate']) t.same(await slowInputs(texts, read(name)), [], name)
})

t.test('a TLS greeting of any bytes costs little', async t => {
  const record = Buffer.from([0x16, 3, 1, 0x3f, 0xf0, 1, 0, 0x3f, 0xec])
  const bytes = [
    '\0',
    '\u0001',
    '\u0016\u0003\u0001\0\u0001\u0001',
    '\u0016\u0003\u0001\0\0',
    '\0\u0001\0\0',
    'ÿ',
  ].map(unit => Buffer.from(unit.repeat(MAX_HEAD / unit.length), 'latin1'))
  const greetings = bytes.flatMap(one => [one, Buffer.concat([record, one])])
  t.same(await slowInputs(greetings, fingerprintsOf), [])
})

t.test('a pattern of a policy of any characters costs little', async t => {
  const more = ['/*', '/**', '/{a}', '{', '}', '*', '/a', '%2A']
  const texts = hostileTexts(MAX_HEAD, { starts: ['/', 'GET /', '/{'], more })
  t.same(await slowInputs(texts, parsePattern), [])
})
