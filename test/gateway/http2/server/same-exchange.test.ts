/** An exchange is the same whichever version of HTTP, and whichever implementation, it comes by. */
import fc from 'fast-check'
import t from 'tap'
import { canMakeCertificates, makeCertificate } from '../../../helpers/certificates.js'
import { type Body, type Exchange, ways } from './exchanges.js'

const RUNS = 150

const letters = fc.string({
  unit: fc.constantFrom(...'abcXYZ019-_.~ !"#$%&\'()*+,/:;<=>?@[]^`{|}'),
  maxLength: 60,
})
const value = fc.oneof(
  letters.map(text => text.trim()),
  fc.constantFrom('', 'a'.repeat(3_000), 'caf\xe9', 'a\tb', '"q, r"', 'x=1; y=2'),
)
const name = fc.oneof(
  fc.stringMatching(/^x-[a-z0-9!#$&'*+.^_`|~-]{1,20}$/),
  fc.constantFrom(
    'accept',
    'user-agent',
    'cookie',
    'authorization',
    'content-type',
    'referer',
    'x-a',
    'cache-control',
  ),
)
const fields = fc
  .tuple(fc.dictionary(name, value, { maxKeys: 12 }), fc.boolean())
  .map(([some, takesTrailers]) => (takesTrailers ? { ...some, te: 'trailers' } : some))
/** nghttp2 and Node's client send no trailers without a value. */
const trailers = fc.dictionary(fc.stringMatching(/^x-[a-z]{1,8}$/), fc.stringMatching(/^[a-z]{1,20}$/), {
  maxKeys: 3,
})
const piece = fc
  .tuple(fc.oneof(fc.nat(20), fc.constantFrom(16_383, 16_384, 16_385, 65_535, 65_536, 100_000)), fc.nat(255))
  .map(([size, byte]) => Buffer.alloc(size, byte))
const body: fc.Arbitrary<Body> = fc.record({
  pieces: fc.array(piece, { maxLength: 5 }),
  hasLength: fc.boolean(),
  trailers,
})
const segment = fc.stringMatching(/^[A-Za-z0-9!$&'()*+,=:@._~-]{0,12}$/)
const target = fc
  .tuple(
    fc.array(segment, { minLength: 1, maxLength: 4 }),
    fc.option(fc.stringMatching(/^([a-z0-9=&+/?]|%2F){0,30}$/)),
  )
  .map(([path, query]) => `/${path.join('/')}${query === null ? '' : `?${query}`}`)

const exchange: fc.Arbitrary<Exchange> = fc
  .record({
    method: fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'PURGE'),
    target,
    fields,
    body: fc.option(body, { nil: undefined }),
    answer: fc.record({
      status: fc.constantFrom(200, 200, 200, 201, 204, 206, 301, 304, 404, 500, 599),
      fields: fc.dictionary(name, value, { maxKeys: 8 }),
      body,
      hints: fc.boolean(),
    }),
  })
  // Node's HTTP/1.1 client sends bodies of these with a field that says so.
  .map(one => (['GET', 'HEAD'].includes(one.method) ? { ...one, body: undefined } : one))

if (canMakeCertificates(t)) {
  t.test(
    'an exchange is the same by HTTP/1.1 and by both implementations of HTTP/2, and to an upstream by either',
    async t => {
      const [first, ...others] = await ways(t, makeCertificate(t.testdir(), 'localhost'))
      if (first === undefined) throw new Error('no way')
      const reached = { upstream: 0, uploads: 0, trailers: 0 }
      const same = async (one: Exchange): Promise<void> => {
        const expected = await first.exchange(one)
        if (expected.upstream !== undefined) reached.upstream += 1
        if ((expected.upstream?.body ?? '') !== '') reached.uploads += 1
        if (expected.client.trailers.length + (expected.upstream?.trailers.length ?? 0) > 0)
          reached.trailers += 1
        for (const way of others) {
          const seen = await way.exchange(one)
          const [a, b] = [JSON.stringify(expected), JSON.stringify(seen)]
          if (a !== b) throw new Error(`${way.name} differs:\n${a.slice(0, 3_000)}\n${b.slice(0, 3_000)}`)
        }
      }
      await fc.assert(fc.asyncProperty(exchange, same), { numRuns: RUNS })
      t.ok(
        reached.upstream > RUNS / 2 && reached.uploads > 10 && reached.trailers > 5,
        JSON.stringify(reached),
      )
    },
  )
}
