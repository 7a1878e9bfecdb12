/** What reading the e-mail or flow id of a request costs at most. */
import t from 'tap'
import { PEEK_BYTES } from '../../../gateway/decide/body-kind.js'
import { emailOrFlow } from '../../../gateway/decide/email-or-flow.js'
import { MAX_HEAD } from '../../../gateway/listen/limits.js'
import type { Facts } from '../../../gateway/types.js'
import { hostileTexts, slowInputs } from '../../helpers/hostile.js'

const secret = Buffer.from('secret')
/** One byte more would not be read at all. */
const LARGEST = PEEK_BYTES - 1

const reads = (contentType: string, query = '') => {
  const request: Facts = {
    id: 'request',
    method: 'POST',
    path: '/self-service/recovery',
    query,
    host: 'acme.localhost',
    client: '192.0.2.1',
    network: '192.0.2.1',
    trusted: false,
    authenticated: false,
    header: name => (name === 'content-type' ? contentType : undefined),
  }
  return (body: string) => emailOrFlow(request, Buffer.from(body), secret)
}

t.test('a form of any content costs little', async t => {
  const texts = hostileTexts(LARGEST, {
    starts: ['', 'email=', '&'],
    more: ['a&', 'a=b;', '[&', 'email=a&', 'email[', '%5B&', ' email=&', '\0=', '+'],
  })
  t.same(await slowInputs(texts, reads('application/x-www-form-urlencoded')), [])
})

t.test('a multipart form of any content costs little', async t => {
  const part = '--b\r\nContent-Disposition: form-data; name'
  const texts = hostileTexts(LARGEST, {
    starts: [
      '',
      part,
      `${part}="`,
      `${part}*=utf-8''`,
      '--b\r\nContent-Disposition',
      '--b\r\nContent-Type: text/plain; charset',
      '--b\r\nContent-Transfer-Encoding:',
      `${part}="email"\r\n\r\n`,
    ],
    ends: ['', 'x\r\n\r\nv\r\n--b--\r\n'],
    more: [
      '--b',
      '--b\r\n',
      '; name',
      '; name=',
      ';name="a"',
      ';name*=',
      '\r\n ',
      '\n\t',
      '\r\r',
      `${part}="a"\r\n\r\nb\r\n`,
    ],
  })
  t.same(await slowInputs(texts, reads('multipart/form-data; boundary=b')), [])
})

t.test('a JSON body of any content costs little, whatever its type says', async t => {
  const texts = hostileTexts(LARGEST, {
    starts: ['', '{', '{"email":', '{"', '{"a":"\\'],
    ends: ['', '}', '"}'],
    more: ['"":', '"":"",', '"\\x":"",', '"email":"a",', '\\u0041', '{"a":', '\uFEFF'],
  })
  for (const type of ['application/json', 'text/plain'])
    t.same(await slowInputs(texts, reads(type)), [], type)
})

t.test('a query or a Content-Type of any content costs little', async t => {
  const queries = hostileTexts(MAX_HEAD, { starts: ['?', '?email='], more: ['a;&', 'email=a&', 'a=b;'] })
  t.same(await slowInputs(queries, query => reads('text/plain', query)('')), [])
  const types = hostileTexts(MAX_HEAD, {
    starts: [
      '',
      'multipart/form-data; boundary',
      'multipart/form-data; boundary="',
      'text/plain; charset',
      'text/plain,',
    ],
    more: ['; boundary', '; boundary=', '; charset=', ', a/', 'text/plain, '],
  })
  t.same(await slowInputs(types, type => reads(type)('--b\r\n\r\n--b--')), [])
})

t.test('a form or query with more fields than any recovery form has is unclear', async t => {
  const form = reads('application/x-www-form-urlencoded')
  const unclear = form('email=a&email=b')
  t.not(form(`email=a${'&x'.repeat(999)}`), unclear, '1000 fields')
  t.equal(form(`email=a${'&x'.repeat(1000)}`), unclear, '1001 fields')
  t.equal(form(`email=a${'&x;y'.repeat(500)}`), unclear, 'some upstreams take semicolons for ampersands')
  t.equal(reads('text/plain', `?email=a${'&x'.repeat(1000)}`)(''), unclear, 'in the query')
})
