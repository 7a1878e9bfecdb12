/** A path reaches the upstream as the client spelt it, and is counted in one bucket however it is spelt. */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { normalizePath, speltPath } from '../../../gateway/listen/path.js'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'

const forwarded = (raw: string): string => speltPath(raw, normalizePath(raw))

t.test(
  'escapes of sub-delimiters are forwarded as they are written, and nothing else is left undone',
  async t => {
    for (const [raw, spelt] of [
      ['/a+b', '/a+b'],
      ['/a%2Bb', '/a%2Bb'],
      ['/a%2bb', '/a%2bb'],
      ['/%21%24%26%27%28%29%2a%2B%2c%3A%3d%40', '/%21%24%26%27%28%29%2a%2B%2c%3A%3d%40'],
      ["/!$&'()*+,:=@", "/!$&'()*+,:=@"],
      ['/x/%2e%2e/a%40//%62', '/a%40/b'],
      ['/%2B/../a', '/a'],
      ['/%7euser%40%c3%a9', '/~user%40%C3%A9'],
      ['/a%3bv%3d1', '/a%3Bv%3d1'],
    ] as const) {
      t.equal(forwarded(raw), spelt, raw)
    }
  },
)

const piece = fc.constantFrom(
  ...['/', '//', '/./', '/../', '/%2e%2E/', '%2e', '.', 'a', '%61', '+', '%2B', '%2b', '%40', '@', '%3D'],
  ...['%2525', '%252B', '%c3%a9', ';', '%3b', '{', '~', '%7E', '*', '%2A', '%21'],
)
const raw = fc.array(piece, { maxLength: 12 }).map(pieces => `/${pieces.join('')}`)

t.test('what is forwarded is counted as what was asked for, segment by segment', async () => {
  fc.assert(
    fc.property(raw, raw => {
      const path = normalizePath(raw)
      const spelt = forwarded(raw)
      const segments = spelt.split('/').map(segment => normalizePath(`/${segment}`).slice(1))
      return normalizePath(spelt) === path && segments.join('/') === path && forwarded(spelt) === spelt
    }),
    { numRuns: 5000 },
  )
})

const POLICY = `version: 1
kind: project-limits
buckets:
  file: ["/files/a+b@c", "/files/a+b@c/**"]
  others: ["*"]
limits: [{ for: [{}], quotas: { file: { sustained: 100000 }, others: { sustained: 100000 } } }]
`

/** An upstream that tells the target it was asked for. */
async function told(t: Test) {
  const upstream = await startApp(t, (req, res) => res.end(req.url))
  return testGateway(t, { upstream, policies: { 'limits.yaml': POLICY } })
}

t.test('any spelling that one handler serves is counted in one bucket', async t => {
  const { url } = await told(t)
  const spelt = fc.array(fc.nat(5), { minLength: 12, maxLength: 12 }).map(dice =>
    [...'/files/a+b@c']
      .map((character, i) => {
        const hex = character.charCodeAt(0).toString(16)
        if (character === '/') return ['/', '//', '/./', '/x/../', '/%2e/', '/'][dice[i] as number]
        return [character, `%${hex}`, `%${hex.toUpperCase()}`, character, character, character][
          dice[i] as number
        ]
      })
      .join(''),
  )
  let before: number | undefined
  await fc.assert(
    fc.asyncProperty(spelt, async path => {
      const { body, headers } = await send(url, { path, headers: { host: 'acme.localhost' } } as never)
      const left = Number(/"file\.sustained";r=(\d+)/.exec(String(headers.ratelimit))?.[1])
      const isNext = before === undefined || left === before - 1
      before = left
      // An upstream's handler knows the file by its unescaped name.
      return isNext && decodeURIComponent(body) === '/files/a+b@c' && body === forwarded(path)
    }),
    { numRuns: 200 },
  )
})

t.test('the query is untouched, and an absolute target is spelt the same', async t => {
  const { url } = await told(t)
  for (const [path, body] of [
    ['/files/a%2Bb?x=%2B//../%41', '/files/a%2Bb?x=%2B//../%41'],
    ['http://acme.localhost/x/../a%2bb?y', '/a%2bb?y'],
  ]) {
    t.equal((await send(url, { path, headers: { host: 'acme.localhost' } } as never)).body, body)
  }
})
