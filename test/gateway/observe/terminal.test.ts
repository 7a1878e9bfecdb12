import t from 'tap'
import { createLog } from '../../../gateway/observe/log.js'
import { isColourful, terminalLine } from '../../../gateway/observe/terminal.js'
import { decisionRecord } from '../../helpers/decision-lines.js'

const line = (fields: object, colourful = false) =>
  terminalLine(JSON.stringify({ level: 'info', time: '2026-01-02T03:04:05.006Z', ...fields }), colourful)
/** The local time, in a time zone that need not differ from UTC by whole hours. */
const TIME = /^\d\d:\d\d:05\.006 /

t.test('a decision is one line with status, request, project, rule, numbers and wait', async t => {
  const counters = [
    { policy: 'catch-all.burst', q: 10, used: 10, t_ms: 251, w_ms: 1000 },
    { policy: 'catch-all.sustained', q: 300, used: 300, t_ms: 41_200, w_ms: 60_000 },
    { policy: 'catch-all.day', q: 9000, used: 400, t_ms: 80_000_000, w_ms: 86_400_000, window: 'day' },
  ]
  const refused = decisionRecord({ decision: 'deny', sent_status: 429, counters })
  t.match(line({ ...refused, msg: 'decision' }), TIME)
  t.match(
    line({ ...refused, msg: 'decision' }),
    / INFO {2}429 refused GET \/files\/a acme catch-all 300\/300 in 60 s, wait 42 s\n$/,
  )
  const held = { policy: 'writes', q: 1, used: 2, t_ms: 1000, w_ms: null }
  t.match(
    line({
      ...decisionRecord({ decision: 'would_deny', rule: 'writes', counters: [held] }),
      msg: 'decision',
    }),
    / 200 would refuse GET \/files\/a acme writes 2\/1 at a time, wait 1 s\n$/,
  )
  const nobody = decisionRecord({ rule: null, project: null, counters: [] })
  t.match(line({ ...nobody, msg: 'decision' }), / 200 allowed GET \/files\/a - -\n$/)
})

t.test(
  'a request is one line with status, request, project, upstream, duration and cause of failure',
  async t => {
    const request = {
      msg: 'request',
      status: 504,
      method: 'GET',
      path: '/slow',
      project: 'acme',
      upstream: 'app',
      address: 'http://127.0.0.1:3000',
      duration_ms: 2003,
      error: 'upstream-timeout',
      cause: 'no answer within 2000 ms',
    }
    t.match(
      line({ ...request, level: 'warn' }),
      / WARN {2}504 GET \/slow acme app http:\/\/127\.0\.0\.1:3000 2003 ms upstream-timeout: no answer within 2000 ms\n$/,
    )
    const unread = { method: null, path: null, project: null, upstream: '', address: null, cause: null }
    t.match(
      line({ ...request, ...unread, status: 400, error: 'bad-request' }),
      / 400 - - - - - 2003 ms bad-request\n$/,
    )
  },
)

t.test('any other line shows its message and fields, and an error its stack below', async t => {
  t.match(line({ msg: 'Ready', port: 80, name: 'a b', ok: 'c' }), / INFO {2}Ready port=80 name="a b" ok=c\n$/)
  const err = { type: 'Error', message: 'broken', stack: 'Error: broken\n    at f (x.js:1:1)' }
  t.match(line({ level: 'error', msg: 'oops', err }), / ERROR oops: broken\n {4}at f \(x\.js:1:1\)\n$/)
})

t.test('no text from outside can send control sequences to the terminal', async t => {
  const evil = '\u001b[2Jgone\nnew line\u202e\u061c\u2028'
  for (const fields of [
    { msg: evil },
    { msg: 'x', reason: evil },
    { msg: 'x', err: { message: evil, stack: `${evil}\n${evil}` } },
    { ...decisionRecord({ project: evil }), msg: 'decision' },
  ]) {
    for (const control of ['\u001b', '\u202e', '\u061c', '\u2028']) t.notOk(line(fields).includes(control))
  }
  t.equal(line({ ...decisionRecord({ project: evil }), msg: 'decision' }).split('\n').length, 2)
})

t.test('colours are used only on terminals that want them', async t => {
  t.match(line({ msg: 'x' }, true), '\u001b[')
  t.notMatch(line({ msg: 'x' }), '\u001b[')
  t.ok(isColourful(true, {}))
  t.notOk(isColourful(true, { NO_COLOR: '1' }))
  t.notOk(isColourful(true, { TERM: 'dumb' }))
  t.notOk(isColourful(false, {}))
})

t.test('with terminal: true the log writes such lines', async t => {
  const lines: string[] = []
  const log = createLog({
    level: 'info',
    terminal: true,
    destination: { write: text => void lines.push(text) },
  })
  log.warn({ secret: 'canary' }, 'careful')
  t.matchOnly(lines, [/WARN.*careful.*secret=\[redacted\]/])
})
