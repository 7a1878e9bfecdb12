/** `sluice top` beside a running gateway: once, on a terminal, and when the connection is lost. */
import t from 'tap'
import { printable } from '../../tools/text.js'
import { top } from '../../tools/top/command.js'
import { KEY, start } from '../gateway/admin/operated.js'
import { recordingIo, sluice } from '../helpers/command.js'
import { send, startApp } from '../helpers/http.js'
import { waitUntil } from '../helpers/wait.js'

/** A terminal of the given size, on which keys can be pressed. */
function terminal(columns: number, rows: number) {
  let press: (key: string) => void = () => undefined
  let taken = false
  return {
    press: (key: string) => press(key),
    get taken() {
      return taken
    },
    terminal: {
      size: { columns, rows },
      take(hears: { key(sequence: string): void }) {
        taken = true
        press = hears.key
        return () => {
          taken = false
        }
      },
    },
  }
}

/** The lines of the most recent screen. */
function screenOf(out: string): string[] {
  return (out.split('\x1b[H').at(-1) ?? '').replace('\x1b[J', '').replaceAll('\x1b[K', '').split('\r\n')
}

t.test('top --once prints a snapshot as text, and --json as JSON', async t => {
  const { adminUrl, post } = await start(t)
  await post('/flood')
  await post('/flood')
  const { code, out } = await sluice(['top', '--once', '--live', adminUrl])
  t.equal(code, 0)
  for (const part of [adminUrl, 'Store memory ok', `Process ${process.pid}`, 'Closest to a limit']) {
    t.match(out, part)
  }
  t.match(out, /^RULE +MODE +REFUSED\/S▼.*\nflood +enforce/m, 'the rule that refuses is listed first')
  t.match(out, /^acme +growth/m)
  const { rules } = JSON.parse((await sluice(['top', '--json', '--live', adminUrl])).out)
  t.match(rules[0], { id: 'flood', last_hour: { limited: 1 } })
})

t.test('on a terminal top redraws the screen, and keys choose the view', async t => {
  const { adminUrl, post } = await start(t)
  await post('/flood')
  const { terminal: fake, press, ...state } = terminal(80, 24)
  const { io, written } = recordingIo()
  const ended = top.run(
    { values: { live: adminUrl, once: false, json: false }, positionals: [] },
    { ...io, terminal: fake },
  )
  const shows = (what: string | RegExp) =>
    waitUntil(String(what), () => screenOf(written.out).some(line => line.match(what)))
  await shows(/^flood/)
  await shows(/^q:quit/)
  t.ok(screenOf(written.out).every(line => line.length <= 80))
  t.equal(screenOf(written.out).length, 24)
  press('p')
  await shows('Projects: 1 to 1 of 1')
  press('\x1b[C')
  await shows('REFUSED/S▼')
  press('r')
  for (let i = 0; i < 20; i += 1) press('\x1b[B')
  await shows('Rules: 6 to 6 of 6')
  press('\x1b[A')
  await shows('Rules: 5 to 6 of 6')
  press('?')
  press('a')
  await shows(/^PROJECT/)
  await post('/flood')
  await shows(/^\d+\.\d+ requests\/s {2}0\.\d+ refused/)
  press('q')
  t.equal(await ended, 0)
  t.notOk(state.taken, 'the terminal is released')
})

t.test('after a lost connection top says so and tries again', async t => {
  const { adminUrl, drain } = await start(t)
  const { terminal: fake, press } = terminal(80, 10)
  const { io, written } = recordingIo()
  const ended = top.run(
    { values: { live: adminUrl, once: false, json: false }, positionals: [] },
    { ...io, terminal: fake },
  )
  await waitUntil('the first screen', () => written.out.includes('q:quit'))
  await drain()
  await waitUntil('the message about the lost connection', () =>
    /^(The gateway has ended|The connection|Nothing answers).*trying again/.test(
      screenOf(written.out).at(-1) ?? '',
    ),
  )
  await waitUntil('another attempt', () => (screenOf(written.out).at(-1) ?? '').includes('Nothing answers'))
  press('\x03')
  t.equal(await ended, 0)
})

t.test('a missing key, a missing gateway and an invalid address are reported', async t => {
  const { adminUrl } = await start(t, '', KEY)
  t.match(await sluice(['top', '--once', '--live', adminUrl]), { code: 1, err: /ADMIN_KEY/ })
  const env = { ADMIN_KEY: KEY }
  t.match(await sluice(['top', '--once', '--live', adminUrl], { env }), { code: 0 })
  t.match(await sluice(['top', '--live', 'http://127.0.0.1:9']), { code: 1, err: /Nothing answers on/ })
  t.match(await sluice(['top', '--live', 'http://']), { code: 2 })
})

t.test('a certificate that has ended is not said to end', async t => {
  const { adminUrl } = await start(t)
  const snapshot = JSON.parse((await sluice(['top', '--json', '--live', adminUrl])).out)
  const failing = { domains: ['a.test'], renews: null, failure: 'The authority is away.', retries: null }
  const saying = async (expires: string) => {
    const certificate = { ...failing, expires }
    const server = await startApp(t, (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      for (let i = 0; i < 2; i += 1)
        res.write(`event: live\ndata: ${JSON.stringify({ ...snapshot, certificate })}\n\n`)
    })
    return (await sluice(['top', '--once', '--live', server])).out
  }
  t.match(
    await saying('2020-01-02T12:00:00.000Z'),
    /Certificate ENDED 2020-01-02 \d\d:.*: The authority is away/,
  )
  t.match(await saying('2999-01-02T12:00:00.000Z'), /Certificate ends 2999-01-02/)
})

t.test('data of a gateway cannot send control characters to the terminal', async t => {
  const { url, adminUrl } = await start(t)
  await send(`${url}/a`, { headers: { host: 'unheard-of.test' } })
  const snapshot = (await sluice(['top', '--json', '--live', adminUrl])).out
  const hostile = JSON.stringify(JSON.parse(snapshot), (key, value) =>
    typeof value === 'string' && !/at$|since/.test(key) ? `\x1b[2J\u009b\r\n\u202e${value}` : value,
  )
  const server = await startApp(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let i = 0; i < 2; i += 1) res.write(`event: live\ndata: ${hostile}\n\n`)
  })
  const { out } = await sluice(['top', '--once', '--live', server], { columns: 200 })
  t.match(out, 'client:127.0.0.0/24~')
  const lines = out.split('\n')
  t.same(lines.map(printable), lines)
})
