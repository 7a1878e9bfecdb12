/**
 * Malformed requests (RFC 9113 section 8): none reaches the upstream, each ends its own stream alone, and the connection
 * serves the next request.
 */
import t from 'tap'
import { sleep } from '../../../helpers/wait.js'
import {
  DATA,
  END_HEADERS,
  END_STREAM,
  type FrameClient,
  fields,
  frame,
  getFrame,
  HEADERS,
  PROTOCOL_ERROR,
  postFrame,
} from '../../listen/frames.js'
import { onBothWires } from '../../listen/http2-scene.js'
import { target } from './hostile-scene.js'

type Field = readonly [name: string, value: string]

interface Malformed {
  readonly what: string
  readonly frames: readonly Buffer[]
  /** nghttp2 drops the field and passes the rest on, or passes all on. */
  readonly nodePasses?: boolean
}

const USUAL: readonly Field[] = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':authority', 'acme.localhost'],
  [':path', '/'],
]
const head = (list: readonly Field[]) => frame(HEADERS, END_HEADERS | END_STREAM, 1, fields(list))
const without = (name: string) => head(USUAL.filter(([each]) => each !== name))
const replaced = (name: string, value: string) =>
  head(USUAL.map(one => (one[0] === name ? [name, value] : one)))
const withField = (name: string, value: string) => head([...USUAL, [name, value]])
const data = (text: string, flags = END_STREAM) => frame(DATA, flags, 1, Buffer.from(text))
const trailers = (list: readonly Field[], flags = END_STREAM) =>
  frame(HEADERS, END_HEADERS | flags, 1, fields(list))
const upload = (more: readonly Field[] = []) => postFrame(1, '/', more)

const MALFORMED: readonly Malformed[] = [
  { what: 'a name with a capital', frames: [withField('X-a', '1')] },
  { what: 'a name with a space', frames: [withField('x a', '1')], nodePasses: true },
  { what: 'a name with a colon', frames: [withField('x-a:', '1')], nodePasses: true },
  { what: 'a name with a line break', frames: [withField('x-a\r\nx-b', '1')], nodePasses: true },
  { what: 'a name beyond ASCII', frames: [withField('x-\xe9', '1')], nodePasses: true },
  { what: 'an empty name', frames: [withField('', '1')], nodePasses: true },
  ...['\r', '\n', '\0', '\x01', '\x7f'].map(byte => ({
    what: `a value with ${JSON.stringify(byte)}`,
    frames: [withField('x-a', `1${byte}2`)],
    nodePasses: true,
  })),
  ...['connection', 'keep-alive', 'proxy-connection', 'upgrade', 'transfer-encoding'].map(name => ({
    what: `the field ${name}`,
    frames: [withField(name, name === 'transfer-encoding' ? 'chunked' : 'close')],
  })),
  { what: 'TE other than trailers', frames: [withField('te', 'gzip')] },
  { what: 'TE with more than trailers', frames: [withField('te', 'trailers, gzip')] },
  ...USUAL.filter(([name]) => name !== ':authority').flatMap(([name, value]) => [
    { what: `no ${name}`, frames: [without(name)] },
    { what: `${name} twice`, frames: [head([...USUAL, [name, value]])] },
    { what: `an empty ${name}`, frames: [replaced(name, '')], nodePasses: true },
  ]),
  { what: ':authority twice', frames: [head([...USUAL, [':authority', 'acme.localhost']])] },
  { what: 'neither :authority nor Host', frames: [without(':authority')] },
  { what: 'an empty :authority', frames: [replaced(':authority', '')] },
  { what: 'a pseudo-header field behind another', frames: [head([['x-a', '1'], ...USUAL])] },
  { what: 'an unknown pseudo-header field', frames: [withField(':evil', '1')] },
  { what: 'one of responses', frames: [head([[':status', '200'], ...USUAL])] },
  { what: ':protocol', frames: [head([[':protocol', 'websocket'], ...USUAL])] },
  { what: 'no field at all', frames: [head([])] },
  { what: 'a :path with a space', frames: [replaced(':path', '/a HTTP/1.1')], nodePasses: true },
  { what: 'a :path with line breaks', frames: [replaced(':path', '/ HTTP/1.1\r\nx: y\r\n\r\n')] },
  { what: 'a :path that is no path', frames: [replaced(':path', 'a')] },
  { what: 'a :path with an origin', frames: [replaced(':path', 'https://evil.localhost/')] },
  { what: 'a :path of * with GET', frames: [replaced(':path', '*')] },
  { what: 'a :method with a space', frames: [replaced(':method', 'GET /evil')] },
  { what: 'a :method with line breaks', frames: [replaced(':method', 'GET\r\n')] },
  { what: 'another :scheme', frames: [replaced(':scheme', 'ftp')], nodePasses: true },
  { what: 'an :authority with a user', frames: [replaced(':authority', 'me@acme.localhost')] },
  { what: 'an :authority with a space', frames: [replaced(':authority', 'acme.localhost evil')] },
  { what: 'an :authority with a path', frames: [replaced(':authority', 'acme.localhost/a')] },
  { what: 'a Host that differs from :authority', frames: [withField('host', 'dev.localhost')] },
  { what: 'two Hosts', frames: [head([...USUAL, ['host', 'acme.localhost'], ['host', 'dev.localhost']])] },
  {
    what: 'two Hosts equal to :authority',
    frames: [head([...USUAL, ['host', 'acme.localhost'], ['host', 'acme.localhost']])],
  },
  { what: 'a :path with a fragment', frames: [replaced(':path', '/a#b')] },
  { what: 'CONNECT with a path', frames: [replaced(':method', 'CONNECT')] },
  {
    what: 'CONNECT',
    frames: [
      head([
        [':method', 'CONNECT'],
        [':authority', 'acme.localhost'],
      ]),
    ],
  },
  { what: 'a content-length without a body', frames: [withField('content-length', '1')] },
  ...['', 'x', '-1', '+1', '1,1', '1 1', '0x1', '1.0', '99999999999999999999'].map(length => ({
    what: `a content-length of ${JSON.stringify(length)}`,
    frames: [upload([['content-length', length]]), data('a')],
  })),
  {
    what: 'two lengths',
    frames: [
      upload([
        ['content-length', '1'],
        ['content-length', '2'],
      ]),
      data('a'),
    ],
  },
  { what: 'more than its content-length', frames: [upload([['content-length', '1']]), data('abc')] },
  { what: 'less than its content-length', frames: [upload([['content-length', '9']]), data('abc')] },
  {
    what: 'less than its content-length, and trailers',
    frames: [upload([['content-length', '9']]), data('abc', 0), trailers([['x-a', '1']])],
  },
  {
    what: 'trailers that do not end the request',
    frames: [upload(), data('a', 0), trailers([['x-a', '1']], 0)],
  },
  { what: 'a pseudo-header field in trailers', frames: [upload(), data('a', 0), trailers([[':path', '/']])] },
  { what: 'a capital in trailers', frames: [upload(), data('a', 0), trailers([['X-a', '1']])] },
  { what: 'connection in trailers', frames: [upload(), data('a', 0), trailers([['connection', 'x-a']])] },
  {
    what: 'content-length in trailers',
    frames: [upload(), data('a', 0), trailers([['content-length', '5']])],
  },
]

/** Well-formed, though unusual. */
const WELL_FORMED: readonly Malformed[] = [
  { what: 'TE: trailers', frames: [withField('te', 'trailers')] },
  { what: 'Host equal to :authority', frames: [withField('host', 'acme.localhost')] },
  {
    what: 'Host in place of :authority',
    frames: [head([...USUAL.filter((_, i) => i !== 2), ['host', 'acme.localhost']])],
  },
  { what: 'an empty value', frames: [withField('x-a', '')] },
  { what: 'a content-length of its body', frames: [upload([['content-length', '3']]), data('abc')] },
  { what: 'trailers', frames: [upload(), data('abc', 0), trailers([['x-a', '1']])] },
]

/** What stream 1 got: a status, or the code that it was reset with. */
async function outcome(client: FrameClient): Promise<string> {
  await client.end(1)
  const status = client.statuses().get(1)?.at(-1)
  return status === undefined ? `reset ${client.resetOf(1)}` : String(status)
}

onBothWires(t, (t, { wire, certificate }) => {
  t.test('a request with', async t => {
    const place = await target(t, certificate, wire)
    for (const { what, frames, nodePasses } of MALFORMED) {
      t.test(what, async t => {
        const client = await place.hostile(t)
        const before = place.seen.length
        client.send(...frames)
        const fate = await outcome(client)
        await sleep(5)
        const whole = place.seen.slice(before).filter(({ isWhole }) => isWhole !== false)
        if (wire === 'node' && nodePasses) {
          t.notMatch(JSON.stringify(whole), /x-a|x-b|evil/)
          return
        }
        t.same(whole, [], 'no request upstream is complete')
        // Some versions of Node end the connection for some of these.
        if (wire === 'node' && client.closed) return
        t.match(fate, new RegExp(`^(400|405|reset ${PROTOCOL_ERROR})$`))
        client.send(getFrame(3))
        await client.end(3)
        t.same(client.statuses().get(3), [200], 'the connection goes on')
      })
    }

    for (const { what, frames } of WELL_FORMED) {
      t.test(`${what} is served`, async t => {
        const client = await place.hostile(t)
        client.send(...frames)
        t.equal(await outcome(client), '200')
      })
    }
  })
})
