/** Names that are resolved anew: their addresses are used, drained and kept, with a name server that the test plays. */
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { Backends } from '../../../gateway/forward/backends.js'
import { systemLookup } from '../../../gateway/forward/resolver.js'
import type { UpstreamSettings } from '../../../gateway/forward/transport.js'

const EVERY_MS = 30_000
const SETTINGS: UpstreamSettings = {
  name: 'app',
  urls: ['http://app.test:3000'],
  resolveMs: EVERY_MS,
  timeouts: { connectMs: 1000, headMs: 1000, idleMs: 1000, upgradeIdleMs: 1000 },
  fingerprintHeaders: { ja3: 'x-ja3', ja4: 'x-ja4' },
  proxyHeaders: [],
}

/** A name server in virtual time. An answer that is an error is a failure. */
function scene(t: Test, settings: Partial<UpstreamSettings> = {}, known?: Backends) {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const dns: Record<string, readonly string[] | Error | Promise<readonly string[]>> = {}
  const seen = { asked: 0, events: [] as string[] }
  const lookup = async (name: string) => {
    seen.asked += 1
    const answer = await dns[name]
    if (answer instanceof Error || answer === undefined) throw answer ?? new Error(`ENOTFOUND ${name}`)
    return answer
  }
  const start = (before = known) =>
    new Backends(
      { ...SETTINGS, ...settings },
      {
        unreachable() {},
        resolving: (name, error) => seen.events.push(`${name} ${error?.message ?? 'again'}`),
        tooMany: count => seen.events.push(`${count} addresses`),
      },
      before,
      lookup,
    )
  const settle = () => new Promise<void>(resolve => setImmediate(resolve))
  return {
    dns,
    seen,
    settle,
    async start(before?: Backends) {
      const backends = start(before)
      t.teardown(() => backends.close())
      await settle()
      return backends
    },
    /** Lets time pass, and names be resolved. */
    async pass(ms: number) {
      mock.timers.tick(ms)
      await settle()
    },
  }
}

const used = (backends: Backends) =>
  [...backends].filter(({ isLeaving }) => !isLeaving).map(({ address }) => address)
const leaving = (backends: Backends) =>
  [...backends].filter(({ isLeaving }) => isLeaving).map(({ address }) => address)

t.test('all addresses of a name are used, IPv4 and IPv6, and a request goes to each', async t => {
  const { dns, start } = scene(t)
  dns['app.test'] = ['10.0.0.2', 'fd00::1', '10.0.0.1', '10.0.0.2', 'fe80::1%eth0']
  const backends = await start()
  const all = ['http://10.0.0.1:3000', 'http://10.0.0.2:3000', 'http://[fd00::1]:3000']
  t.same(used(backends), all)
  t.same(new Set(all.map(() => backends.choose().address)), new Set(all))
})

t.test('before the first answer the name itself is used', async t => {
  const { dns, start, settle } = scene(t)
  let answer: (addresses: readonly string[]) => void = () => {}
  dns['app.test'] = new Promise(resolve => {
    answer = resolve
  })
  const backends = await start()
  t.same(used(backends), ['http://app.test:3000'])
  answer(['10.0.0.1'])
  await settle()
  t.same(used(backends), ['http://10.0.0.1:3000'])
})

t.test('a name is asked for again and again, and what it no longer has gets no more requests', async t => {
  const { dns, seen, start, pass } = scene(t)
  dns['app.test'] = ['10.0.0.1', '10.0.0.2']
  const backends = await start()
  const [first, second] = backends
  const request = { client: 'a', waitsSince: undefined, go() {}, giveWay() {} }
  first?.places.enter(request)
  if (second !== undefined) second.tunnels = 1
  dns['app.test'] = ['10.0.0.3']
  await pass(EVERY_MS)
  t.equal(seen.asked, 2)
  t.same(used(backends), ['http://10.0.0.3:3000'])
  t.same(leaving(backends), ['http://10.0.0.1:3000', 'http://10.0.0.2:3000'])
  t.equal(backends.choose().address, 'http://10.0.0.3:3000')
  first?.places.leave(request)
  await pass(1000)
  t.same(leaving(backends), ['http://10.0.0.2:3000'], 'an open WebSocket stays')
  if (second !== undefined) second.tunnels = 0
  await pass(1000)
  t.same(leaving(backends), [])
})

t.test('what is known of an address survives a new answer and a reload', async t => {
  const { dns, start, pass } = scene(t)
  dns['app.test'] = ['10.0.0.1', '10.0.0.2']
  const backends = await start()
  const [ill] = backends
  for (let i = 0; i < 3; i++) ill?.failed(new Error('silence'))
  dns['app.test'] = ['10.0.0.1', '10.0.0.3']
  await pass(EVERY_MS)
  t.equal([...backends][0], ill)
  t.ok(ill?.ejected)
  dns['app.test'] = new Error('SERVFAIL')
  const reloaded = await start(backends)
  t.same(used(reloaded), ['http://10.0.0.1:3000', 'http://10.0.0.3:3000'])
  t.ok([...reloaded][0]?.ejected)
})

t.test('a resolver that fails keeps the last answer, is reported once, and asked again soon', async t => {
  const { dns, seen, start, pass } = scene(t)
  dns['app.test'] = ['10.0.0.1']
  const backends = await start()
  dns['app.test'] = new Error('SERVFAIL')
  await pass(EVERY_MS)
  await pass(5000)
  await pass(5000)
  t.equal(seen.asked, 4)
  t.same(used(backends), ['http://10.0.0.1:3000'])
  t.same(seen.events, ['app.test SERVFAIL'])
  const [backend] = backends
  t.match(backend && backends.nameFaultOf(backend), { cause: 'SERVFAIL', since: Number })
  dns['app.test'] = []
  await pass(5000)
  t.same(used(backends), ['http://10.0.0.1:3000'], 'no address is no answer')
  dns['app.test'] = ['10.0.0.2']
  await pass(5000)
  t.same(used(backends), ['http://10.0.0.2:3000'])
  t.same(seen.events, ['app.test SERVFAIL', 'app.test again'])
  t.equal(backend && backends.nameFaultOf(backend), undefined)
})

t.test('a resolver that hangs is reported, and asked once', async t => {
  const { dns, seen, start, pass } = scene(t)
  dns['app.test'] = new Promise(() => {})
  const backends = await start()
  for (let i = 0; i < 10; i++) await pass(EVERY_MS)
  t.same(seen, { asked: 1, events: ['app.test no answer within 5000 ms'] })
  t.same(used(backends), ['http://app.test:3000'])
})

t.test('of a thousand addresses the same 64 are used in whatever order they come', async t => {
  const { dns, seen, start, pass } = scene(t)
  const many = Array.from({ length: 1000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`)
  dns['app.test'] = many
  const backends = await start()
  const first = used(backends)
  t.equal(first.length, 64)
  dns['app.test'] = many.toReversed()
  await pass(EVERY_MS)
  t.same(used(backends), first)
  t.same(seen.events, ['1000 addresses'], 'reported once')
})

t.test(
  'each name has its addresses with the weight of its entry, and an IP address is not resolved',
  async t => {
    const urls = [{ url: 'https://a.test', weight: 3 }, 'https://b.test:8443', 'https://10.9.9.9']
    const { dns, seen, start } = scene(t, { urls })
    dns['a.test'] = ['10.0.0.1', '10.0.0.2']
    dns['b.test'] = ['10.0.0.1']
    const backends = await start()
    t.same(
      [...backends].map(({ address, weight }) => [address, weight]),
      [
        ['https://10.0.0.1', 3],
        ['https://10.0.0.2', 3],
        ['https://10.0.0.1:8443', 1],
        ['https://10.9.9.9', 1],
      ],
    )
    t.equal(seen.asked, 2)
  },
)

t.test('an address that is new beside others starts slowly, those of the first answer do not', async t => {
  const { dns, start, pass } = scene(t, { slowStartMs: 3_600_000 })
  dns['app.test'] = ['10.0.0.1']
  const backends = await start()
  dns['app.test'] = ['10.0.0.1', '10.0.0.2']
  await pass(EVERY_MS)
  const now = performance.now()
  t.same(
    [...backends].map(one => one.weightAt(now)),
    [1, 0.1],
  )
})

t.test('the system resolves names of the hosts file', async t => {
  const addresses = await systemLookup('localhost')
  t.ok(addresses.every(address => address === '127.0.0.1' || address === '::1'))
  await t.rejects(systemLookup('no-such-name.invalid'), { code: /ENOTFOUND|EAI_AGAIN/ })
})
