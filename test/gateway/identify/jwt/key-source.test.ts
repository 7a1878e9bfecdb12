/** Key sets as issuers should not serve them: each is a sentence, soon, and without holding much of it. */
import { execFileSync } from 'node:child_process'
import { existsSync, utimesSync, writeFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import {
  keySetFrom,
  keySource,
  nameOf,
  sourceFault,
  textOfFile,
} from '../../../../gateway/identify/jwt/key-source.js'
import { startApp } from '../../../helpers/http.js'
import { newKey } from './issuer.js'

const good = JSON.stringify({ keys: [(await newKey('a')).jwk] })
const MEBIBYTE = Buffer.alloc(1024 * 1024, 32)

t.test('a URL that serves no key set is a sentence', async t => {
  let served: RequestListener = (_req, res) => res.end(good)
  let sent = 0
  const url = await startApp(t, (req, res) => served(req, res))
  const read = () => keySource(`${url}/jwks.json`, true).read()
  t.match(await read(), { set: { keys: [{ kid: 'a' }] }, skipped: [] })
  const endless: RequestListener = (_req, res) => {
    const more = () => {
      while (!res.destroyed && res.write(MEBIBYTE)) sent += 1
    }
    res.on('drain', more)
    more()
  }
  const cases: [string, RequestListener, RegExp][] = [
    ['endless', endless, /more than \d+ bytes/],
    ['10 MiB', (_req, res) => res.end(Buffer.alloc(10 * 1024 * 1024, 32)), /more than \d+ bytes/],
    ['a page', (_req, res) => res.end('<html>'), /not JSON/],
    ['deep', (_req, res) => res.end(`${'['.repeat(100_000)}`), /not JSON/],
    ['no list', (_req, res) => res.end('{"keys":{}}'), /not a list/],
    ['null', (_req, res) => res.end('null'), /not a list/],
    [
      'many',
      (_req, res) => res.end(JSON.stringify({ keys: Array(5000).fill({ kty: 'EC' }) })),
      /not a list of up to/,
    ],
    ['away', (_req, res) => res.writeHead(503).end(), /status 503/],
    ['elsewhere', (_req, res) => res.writeHead(302, { location: '/other' }).end(), /status 302/],
    [
      'cut',
      (_req, res) => res.writeHead(200, { 'content-length': 100 }).write('{', () => res.destroy()),
      /./,
    ],
    ['silent', () => undefined, /no answer within \d+ ms/],
  ]
  for (const [name, serve, expected] of cases) {
    served = serve
    await t.rejects(read(), { message: expected }, name)
  }
  t.ok(sent < 64, 'an endless one is not read on')
})

t.test('a file is read again when it has changed', async t => {
  const file = join(t.testdir(), 'jwks.json')
  writeFileSync(file, good)
  const source = keySource(file, false)
  await source.read()
  t.equal(await source.hasChanged?.(), false)
  writeFileSync(file, `${good}\n`)
  t.equal(await source.hasChanged?.(), true)
})

t.test('a file that could not be read has still to be read', async t => {
  // Linux has a file that is regular by its looks, and whose every read fails.
  const unreadable = '/proc/self/mem'
  if (!existsSync(unreadable)) return
  const source = keySource(unreadable, false)
  await t.rejects(source.read())
  t.equal(await source.hasChanged?.(), true)
})

t.test('another set of the same size and the same time is a change, too', async t => {
  const file = join(t.testdir(), 'jwks.json')
  const time = new Date('2026-01-01')
  const write = (text: string) => {
    writeFileSync(file, text)
    utimesSync(file, time, time)
  }
  write(good)
  const source = keySource(file, false)
  await source.read()
  write(good.replace('"a"', '"b"'))
  t.equal(await source.hasChanged?.(), true)
})

t.test('what is no regular file is refused at once, as a file that is too large is', async t => {
  const folder = t.testdir({ large: 'x'.repeat(1024 * 1024 + 1), inner: {} })
  execFileSync('mkfifo', [join(folder, 'fifo')])
  for (const [name, sentence] of [
    ['fifo', /not a regular file/],
    ['inner', /a folder/],
    ['large', /more than \d+ bytes/],
  ] as const) {
    await t.rejects(keySource(join(folder, name), false).read(), { message: sentence }, name)
    t.throws(() => textOfFile(join(folder, name)), { message: sentence }, name)
  }
})

t.test('a private address, or plain http, is refused unless it is allowed', async t => {
  const refused = [
    'http://idp.example/jwks.json',
    'https://127.0.0.1/jwks.json',
    'https://[::1]/jwks.json',
    'https://[::ffff:10.0.0.1]/jwks.json',
    'https://2130706433/jwks.json',
    'https://0x7f.1/jwks.json',
    'https://169.254.169.254/latest',
    'https://localhost/jwks.json',
    'https://a.localhost./jwks.json',
  ]
  for (const url of refused) {
    t.ok(sourceFault(url, false), url)
    t.notOk(sourceFault(url, true), url)
  }
  t.notOk(sourceFault('https://idp.example/jwks.json', false))
})

t.test('of mixed keys the public ones count, and a set may have none', async t => {
  const { jwk } = await newKey('a')
  for (const keys of [[], [{ kty: 'oct', k: 'AAAA' }]])
    t.same(keySetFrom(JSON.stringify({ keys })).set.keys, [])
  t.match(keySetFrom(JSON.stringify({ keys: [jwk, { kty: 'oct', k: 'AAAA' }, null, 7] })).set.keys, {
    length: 1,
  })
})

t.test('no password comes into a log: not of the URL, and nothing of its query', t => {
  for (const url of ['https://a:b@idp.example/x', 'https://:b@idp.example/x', 'https://a@idp.example/x']) {
    t.match(sourceFault(url, true), /must not contain a user or a password/)
  }
  t.notMatch(sourceFault('https://a:secret@idp.example:99999/', true), /secret/)
  t.match(sourceFault('ftp://a:secret@idp.example/x', true), /must not contain a user or a password/)
  t.equal(nameOf('ftp://a:secret@idp.example/x?secret'), 'ftp://idp.example/x')
  t.equal(nameOf('https://idp.example/x?key=secret#secret'), 'https://idp.example/x')
  t.equal(nameOf('/etc/sluice/jwks.json'), '/etc/sluice/jwks.json')
  t.end()
})
