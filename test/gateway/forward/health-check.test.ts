/** Health checks: what is asked when, what counts as well, and answers without end or sense. */
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { HealthChecks } from '../../../gateway/forward/health-check.js'
import { Standing } from '../../../gateway/forward/standing.js'
import type { OutgoingRequest, ResponseHandler } from '../../../gateway/outgoing-request.js'

const SETTINGS = { path: '/healthz?deep', everyMs: 5000, timeoutMs: 2000, healthy: 2, unhealthy: 3 }
const head = (status: number) => ({ status, reason: '', fields: { get: () => undefined } as never })

/** Checks of an address that does what the test says, in virtual time. */
function scene(t: Test) {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const seen = { asked: [] as string[], aborted: 0, released: 0, results: [] as string[], tooLong: 0 }
  const waiting: ResponseHandler[] = []
  const connection = {
    ask: (_handler: ResponseHandler, _method: string, text: string) => seen.asked.push(text),
    abort: () => {
      seen.aborted += 1
    },
    release: () => {
      seen.released += 1
    },
  } as unknown as OutgoingRequest
  const pool = {
    take() {},
    takeNew: (handler: ResponseHandler) => waiting.push(handler),
    close() {},
  }
  const checks = new HealthChecks(SETTINGS, pool, 'app.test:3000', {
    checked: (error, isCutOff) =>
      seen.results.push(`${error?.message ?? 'passed'}${isCutOff ? ', cut off' : ''}`),
    tooLong: () => {
      seen.tooLong += 1
    },
  })
  t.teardown(() => checks.close())
  /** The next check, if it has begun. */
  const next = () => waiting.shift()
  /** A check that has a connection. */
  const connected = () => {
    const check = next() as ResponseHandler
    check.onConnection(connection)
    return check
  }
  mock.timers.tick(0)
  return { seen, checks, next, connected, connection, waiting }
}

t.test('an address is asked at once, and again about every interval', async t => {
  const { seen, connected, next } = scene(t)
  const first = connected()
  t.equal(
    seen.asked[0],
    'GET /healthz?deep HTTP/1.1\r\nHost: app.test:3000\r\nUser-Agent: sluice-health-check\r\nAccept: */*\r\nConnection: close\r\n\r\n',
  )
  first.onHead(head(204))
  t.same(seen.results, ['passed'])
  first.onEnd([])
  mock.timers.tick(4400)
  t.equal(next(), undefined)
  mock.timers.tick(1200)
  t.ok(next(), 'within a tenth of the interval')
})

t.test('any 2xx passes, and anything else fails', async t => {
  for (const [status, result] of [
    [200, 'passed'],
    [299, 'passed'],
    [302, 'answered 302 to the health check'],
    [404, 'answered 404 to the health check'],
    [503, 'answered 503 to the health check'],
  ] as const) {
    await t.test(String(status), async t => {
      const { seen, connected } = scene(t)
      connected().onHead(head(status))
      t.same(seen.results, [result])
    })
  }
})

t.test('a check that gets no answer fails in time, and only then the next begins', async t => {
  const { seen, connected, next } = scene(t)
  connected()
  mock.timers.tick(1999)
  t.same(seen.results, [])
  mock.timers.tick(1)
  t.same(seen.results, ['no answer to the health check within 2000 ms'])
  t.equal(seen.aborted, 1, 'its connection is closed')
  mock.timers.tick(6000)
  t.ok(next())
})

t.test('while a connection is being opened no further check begins', async t => {
  const { seen, connection, next, waiting } = scene(t)
  const check = next() as ResponseHandler
  mock.timers.tick(60_000)
  t.equal(waiting.length, 0)
  t.equal(seen.results.length, 1)
  check.onConnection(connection)
  t.same([seen.released, seen.asked], [1, []], 'a connection that comes too late is not used')
  mock.timers.tick(6000)
  t.equal(waiting.length, 1)
})

t.test('a body is read up to 64 KiB, and the first that is longer is reported', async t => {
  const { seen, connected } = scene(t)
  for (let i = 0; i < 3; i++) {
    const check = connected()
    check.onHead(head(200))
    check.onData(Buffer.alloc(64 * 1024))
    t.equal(seen.aborted, i)
    check.onData(Buffer.alloc(1))
    t.equal(seen.aborted, i + 1)
    mock.timers.tick(6000)
  }
  t.same(seen.results, ['passed', 'passed', 'passed'], 'the status says that it is well')
  t.equal(seen.tooLong, 1)
})

t.test('a body that trickles ends with the time of its check', async t => {
  const { seen, connected, next } = scene(t)
  const check = connected()
  check.onHead(head(200))
  mock.timers.tick(2000)
  t.equal(seen.aborted, 1)
  t.same(seen.results, ['passed'])
  mock.timers.tick(6000)
  t.ok(next())
})

t.test('a refused connection and nonsense are failures, and told apart', async t => {
  const { seen, connected, next } = scene(t)
  next()?.onFault('no-connection', new Error('connect ECONNREFUSED'), false)
  mock.timers.tick(6000)
  connected().onFault('invalid', new Error('the version'), true)
  t.same(seen.results, [
    'connect ECONNREFUSED, cut off',
    'the answer to the health check is not valid HTTP: the version',
  ])
})

t.test('nothing is asked or reported once checks are closed', async t => {
  const { seen, checks, connected, waiting } = scene(t)
  const check = connected()
  checks.close()
  check.onFault('gone', new Error('closed here'), false)
  mock.timers.tick(60_000)
  t.same([seen.results, waiting], [[], []])
})

t.test('so many checks in a row decide, and a single one to the contrary begins anew', async t => {
  const standing = new Standing()
  const bad = new Error('503')
  const checks = (pattern: string) =>
    [...pattern].map(one => standing.checked(one === '+' ? undefined : bad, SETTINGS) ?? '')
  t.same(checks('+--+--'), ['', '', '', '', '', ''])
  t.equal(standing.unhealthy, undefined)
  t.same(checks('-'), ['unhealthy'])
  t.match(standing.unhealthy, { cause: '503', since: Number })
  t.same(checks('--+-+'), ['', '', '', '', ''])
  t.same(checks('+'), ['healthy'])
  t.equal(standing.unhealthy, undefined)
})
