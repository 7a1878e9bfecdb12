/** A fact about a request cannot be forged by another spelling of a field's name. */
import fc from 'fast-check'
import t from 'tap'
import { CLIENT_FACT_FIELDS } from '../../../config/words/words.js'
import { RequestFields } from '../../../gateway/forward/request-fields.js'
import { announcedTrailers } from '../../../gateway/forward/trailers.js'
import { fieldsOf } from '../../../gateway/http1/fields.js'

const PUNCTUATION = [..."!#$%&'*+-.^_`|~"]
const settings = {
  fingerprintHeaders: { ja3: 'x-ja3-fingerprint', ja4: 'x-ja4-fingerprint' },
  proxyHeaders: ['cf-connecting-ip', 'x-edge-region'],
  methodOverride: 'x-http-method',
}
const fields = new RequestFields(settings)

const RESERVED = [
  ...['x-sluice-project', 'x-sluice-anything', 'x-forwarded-for', 'x-forwarded-anything', 'forwarded'],
  ...['x-http-method-override', 'x-method-override', 'content-length', 'transfer-encoding', 'host', 'te'],
  ...['x-ja3-fingerprint', 'x-ja4-fingerprint', 'x-edge-region', 'x-http-method', ...CLIENT_FACT_FIELDS],
]
const OWN_FATE = new Set([
  ...settings.proxyHeaders,
  'x-ja3-fingerprint',
  'x-ja4-fingerprint',
  'x-http-method',
])

t.test(
  'a reserved name is dropped from heads and trailers, whatever punctuation it is spelt with',
  async () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...RESERVED),
        fc.infiniteStream(fc.constantFrom(...PUNCTUATION)),
        (name, marks) => {
          const spelt = name.replaceAll('-', () => marks.next().value as string)
          const head = fieldsOf(['Trailer', spelt])
          return (
            (OWN_FATE.has(spelt) || fields.fateOf(spelt) === 'dropped') &&
            announcedTrailers([spelt, 'forged'], head, fields).length === 0
          )
        },
      ),
      { numRuns: 3000 },
    )
  },
)

t.test('the names that the settings list have their own fate, in their own spelling alone', async t => {
  for (const name of ['cf-connecting-ip', 'x-edge-region', 'x-ja3-fingerprint', 'x-ja4-fingerprint']) {
    t.equal(fields.fateOf(name), 'vouched', name)
    t.equal(fields.fateOf(name.replaceAll('-', '.')), 'dropped')
  }
  t.equal(fields.fateOf('x-http-method'), 'override')
  t.equal(fields.fateOf('x.http.method'), 'dropped')
})

t.test(
  'a field that callers are counted by passes in its own spelling alone, and not as a trailer',
  async t => {
    const countedHeaders = ['authorization', 'x-device', 'x_tenant', 'x-real-ip', 'x-edge-region']
    const counting = new RequestFields({ ...settings, countedHeaders })
    for (const name of ['authorization', 'x-device', 'x_tenant', 'content-type', 'content-encoding']) {
      t.equal(counting.fateOf(name), 'counted', name)
      t.same(announcedTrailers([name, '1'], fieldsOf(['Trailer', name]), counting), [])
    }
    for (const name of ['x.device', 'x_device', 'xdevice', 'x-tenant', 'content.type', 'content_encoding']) {
      t.equal(counting.fateOf(name), 'dropped', name)
    }
    t.equal(counting.fateOf('x-real-ip'), 'dropped', 'what no client may say stays removed')
    t.equal(counting.fateOf('x-edge-region'), 'vouched')
    t.equal(fields.fateOf('x.device'), 'passes', 'without a rule that counts by it')
  },
)

t.test('other names pass, however they are spelt', async t => {
  for (const name of [
    ...['via', 'accept', 'authorization', 'cookie', 'x-request-source', 'x.y', 'x~y_z', '~', 'traceparent'],
    ...['x-amz-date', 'x-hub-signature-256', 'sec-ch-ua', 'x-forwarder', 'x-sluic', 'tee', 'hosts'],
  ]) {
    t.equal(fields.fateOf(name), 'passes', name)
  }
  const head = fieldsOf(['Trailer', 'x-checksum, x.y'])
  t.same(announcedTrailers(['X-Checksum', '1', 'x.y', '2'], head, fields), ['X-Checksum', '1', 'x.y', '2'])
})
