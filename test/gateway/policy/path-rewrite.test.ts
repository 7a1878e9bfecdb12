import fc from 'fast-check'
import t from 'tap'
import type { FaultHere } from '../../../gateway/policy/fault.js'
import { compileRewrite, type WrittenRewrite } from '../../../gateway/policy/path-rewrite.js'
import { parsePattern } from '../../../gateway/policy/pattern.js'

function rewriteOf(written: WrittenRewrite, pattern: string) {
  const faults: FaultHere[] = []
  return { rewrite: compileRewrite(written, parsePattern(pattern), faults), faults }
}

t.test('a prefix is stripped by whole segments, and another put in front', async t => {
  const { rewrite } = rewriteOf({ stripPrefix: '/v1' }, '/v1/**')
  for (const [path, to] of [
    ['/v1', '/'],
    ['/v1/', '/'],
    ['/v1/x', '/x'],
    ['/v1/x/', '/x/'],
    ['/v1/v1/x', '/v1/x'],
  ] as const) {
    t.equal(rewrite?.forUpstream(path), to, path)
  }
  const both = rewriteOf({ stripPrefix: '/v1/a@b', addPrefix: '/in/%2A' }, '/v1/a@b/**').rewrite
  t.equal(both?.forUpstream('/v1/a%40b/x'), '/in/*/x', 'in any spelling')
  t.equal(both?.forUpstream('/v1/a@b'), '/in/*')
  const added = rewriteOf({ addPrefix: '/in' }, '/**').rewrite
  t.equal(added?.forUpstream('/'), '/in/')
})

t.test('a path of the upstream is the one that clients reach it by, if there is one', async t => {
  const { rewrite } = rewriteOf({ stripPrefix: '/v1', addPrefix: '/in' }, '/v1/**')
  t.equal(rewrite?.forClient('/in/x'), '/v1/x')
  t.equal(rewrite?.forClient('/in'), '/v1')
  t.equal(rewrite?.forClient('/inside'), undefined, 'no segment of that name')
  t.equal(rewrite?.forClient('/x'), undefined)
  const added = rewriteOf({ addPrefix: '/in' }, '/**').rewrite
  t.equal(added?.forClient('/in'), '/')
  t.equal(added?.forClient('/in//evil.test/x'), undefined, 'never another host')
  t.equal(added?.forClient('/in/\\evil.test/x'), undefined)
  t.equal(added?.forClient('/in/\t/evil.test/x'), undefined, 'a browser drops tabs')
})

t.test('what is rewritten is in normal form, begins with one slash, and leads back', async () => {
  const segment = fc.constantFrom('a', 'b@c', 'x+y', '%C3%A9', ';', '...')
  const prefix = fc.array(segment, { minLength: 1, maxLength: 3 }).map(parts => `/${parts.join('/')}`)
  const rest = fc.array(segment, { maxLength: 3 }).map(parts => parts.map(part => `/${part}`).join(''))
  fc.assert(
    fc.property(prefix, prefix, rest, fc.boolean(), (stripPrefix, addPrefix, rest, slash) => {
      const { rewrite, faults } = rewriteOf({ stripPrefix, addPrefix }, `${stripPrefix}/**`)
      const asked = stripPrefix + rest + (slash ? '/' : '')
      const to = rewrite?.forUpstream(asked) ?? ''
      return (
        faults.length === 0 &&
        to === addPrefix + asked.slice(stripPrefix.length) &&
        !to.includes('//') &&
        rewrite?.forClient(to) === asked
      )
    }),
  )
})

t.test('only the beginning of the path, in plain segments, can be stripped', async t => {
  const faultsOf = (written: WrittenRewrite, pattern: string) =>
    rewriteOf(written, pattern).faults.map(({ path, message }) => `${path.join('.')}: ${message}`)
  t.same(faultsOf({ stripPrefix: '/v1' }, '/v1x/**'), [
    'stripPrefix: "/v1" is not how the path "/v1x/**" begins, so not every request of the route has it. Write segments that the path spells out.',
  ])
  for (const [prefix, pattern] of [
    ['/v1', '/**'],
    ['/v1/x', '/v1'],
    ['/v1', '/{version}/x'],
    ['/v2', 'GET /v1/**'],
  ] as const) {
    t.match(faultsOf({ stripPrefix: prefix }, pattern), [/^stripPrefix: .* is not how the path/], pattern)
  }
  t.match(faultsOf({ addPrefix: '/a/..' }, '/**'), [/^addPrefix: The segment "\.\." can never match/])
  t.match(faultsOf({ addPrefix: '/{a}' }, '/**'), [/^addPrefix: .* must be plain segments/])
  t.match(faultsOf({ addPrefix: '/a%2Fb' }, '/**'), [/^addPrefix: .*escaped slash/])
})
