import t from 'tap'
import { accessLog, type LoggedRequests } from '../../../gateway/observe/access-log.js'
import { Redactor } from '../../../gateway/observe/redact.js'
import { finished } from './events.js'

const redactor = new Redactor(Buffer.from('a salt'), new Set(['sessions', 'whoami']))

function logged(requests: LoggedRequests) {
  const lines: Record<string, unknown>[] = []
  const write = (level: string) => (fields: object, msg: string) => void lines.push({ level, msg, ...fields })
  const log = { debug() {}, info: write('info'), warn: write('warn'), error: write('error') }
  return { lines, observer: accessLog(requests, redactor, log) }
}
const failed = (upstream = 'identity') =>
  finished({ upstream, status: 502, source: 'gateway', error: 'upstream-unreachable' })

t.test(
  'at most a hundred failed requests a second are logged per upstream and status, and the rest counted',
  async t => {
    const { lines, observer } = logged('errors')
    for (let i = 0; i < 250; i++) observer?.finished(failed())
    observer?.finished(failed('app'))
    observer?.finished(finished({ status: 500 }))
    observer?.finished(finished())
    observer?.finished(finished({ status: 0 }))
    const of = (upstream: string) =>
      lines.filter(line => line.upstream === upstream && line.msg === 'request').length
    t.equal(of('identity'), 101, 'another status has lines of its own')
    t.equal(of('app'), 1, 'another upstream has lines of its own')
    await observer?.close?.()
    t.match(lines.at(-1), {
      msg: 'requests dropped from the log',
      status: 502,
      upstream: 'identity',
      dropped: 150,
      per_second: 100,
    })
  },
)

t.test('refused connections are logged a hundred times a second at most', async t => {
  const { lines, observer } = logged('errors')
  const refused = { id: 'x', network: '203.0.113.7', at: 0 }
  for (let i = 0; i < 250; i++) observer?.unread({ ...refused, code: 'gateway-overloaded' })
  observer?.unread({ ...refused, code: 'bad-request' })
  t.equal(lines.length, 100)
  t.match(lines[0], {
    status: 503,
    error: 'gateway-overloaded',
    cause: /maxConnections/,
    ip: '203.0.113.0/24',
  })
  await observer?.close?.()
  t.match(lines.at(-1), { status: 503, upstream: '', dropped: 150 })
})

t.test('with access: all every request is logged, and with access: off none', async t => {
  const { lines, observer } = logged('all')
  for (let i = 0; i < 250; i++) observer?.finished(failed())
  observer?.finished(finished())
  t.equal(lines.length, 251)
  t.equal(lines.at(-1)?.level, 'info')
  t.equal(logged('off').observer, undefined)
})

t.test('no line holds an address, a query or a path that may name a person', async t => {
  const { lines, observer } = logged('all')
  observer?.finished(finished({ facts: { path: '/sessions/jane@example.com' } }))
  t.notMatch(JSON.stringify(lines), /jane|canary|203\.0\.113\.77/)
  t.match(lines[0], { path: /^\/sessions\/~[\w-]{16}$/, ip: '203.0.113.0/24' })
})

t.test('an invented method is logged with 32 characters at most', async t => {
  const { lines, observer } = logged('all')
  observer?.finished(finished({ method: 'B'.repeat(15_000), status: 501, source: 'gateway' }))
  t.match(lines, [{ status: 501, method: 'B'.repeat(32) }])
  t.equal(String(lines[0]?.method).length, 32)
})

t.test("a client's request id that is not a valid one is logged as null", async t => {
  const { lines, observer } = logged('all')
  for (const id of ['ok-1', 'x'.repeat(129), 'two words', 'caf\xe9', '']) {
    observer?.finished(finished({ facts: { header: name => (name === 'x-request-id' ? id : undefined) } }))
  }
  t.same(
    lines.map(line => line.client_request_id),
    ['ok-1', null, null, null, null],
  )
})
