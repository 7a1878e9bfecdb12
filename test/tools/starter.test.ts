/** The first minute: a gateway in front of the user's own service without files, and files to start from. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { freePort } from '../helpers/child-server.js'
import { sluice } from '../helpers/command.js'
import { serveProcess } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { inProject } from '../helpers/root.js'
import { waitUntil } from '../helpers/wait.js'

const FREE_PORTS = { PORT: '0', ADMIN_PORT: '0' }

t.test('serve --upstream limits each client address, and tells clients what is left', async t => {
  const upstream = await startApp(t, (req, res) => res.end(`mine ${req.url}`))
  const gateway = await serveProcess(
    t,
    ['--upstream', upstream, '--limit', '2/m', '--limit', '50/h'],
    FREE_PORTS,
  )
  t.match(
    gateway.out(),
    `(2 requests per minute and 50 requests per hour from each client address, to ${upstream})`,
  )
  const keep = `Keep it: sluice init --upstream ${upstream} --limit 2/m --limit 50/h`
  await waitUntil('the line after the ready line', () => gateway.out().includes(keep))

  const first = await send(`${gateway.url}/any`)
  t.equal(first.body, 'mine /any')
  t.match(first.headers.ratelimit, '"everything.minute";r=1;t=60, "everything.hour";r=49;t=3600')
  await send(`${gateway.url}/other`, { headers: { host: 'another.example' } })
  const refused = await send(gateway.url, { method: 'POST' })
  t.equal(refused.status, 429)
  t.match(refused.json().detail, 'Bucket everything admits 2 requests per minute from each client address')
  t.notMatch(gateway.out(), 'nothing answers')
})

t.test('an upstream that does not respond yet is reported in a note, and requests get 502', async t => {
  const gateway = await serveProcess(t, ['--upstream', 'http://127.0.0.1:9'], FREE_PORTS)
  await waitUntil('the note', () => gateway.out().includes('nothing answers at http://127.0.0.1:9 yet'))
  t.equal((await send(gateway.url)).status, 502)
})

t.test('init writes files that pass the strict check, and suggests the next commands', async t => {
  const folder = join(t.testdir(), 'mine')
  const { code, out } = await sluice([
    'init',
    folder,
    '--upstream',
    'http://127.0.0.1:3000',
    '--limit',
    '500/10m',
  ])
  t.equal(code, 0)
  t.match(out, '500 requests per 10 minutes from each client address, to http://127.0.0.1:3000')
  t.match(out, `sluice check --config ${folder}`)
  t.match(out, `sluice serve --config ${folder}`)
  t.match(out, 'curl -i http://127.0.0.1:8080/')
  const checked = await sluice(['check', '--config', folder, '--strict'])
  t.equal(checked.code, 0, checked.out)
  t.match(checked.out, 'good. 1 upstream, 0 projects, 1 policy file')
  const limits = join(folder, 'policies', 'limits.yaml')
  writeFileSync(limits, readFileSync(limits, 'utf8').replace(/^#( +login:)/gm, '$1'))
  const tried = await sluice(['check', '--config', folder, '--table'])
  t.match(tried.out, /login .*5 per minute, by client-ip/, 'the rule suggested in a comment is valid')
})

t.test('init never overwrites files', async t => {
  const folder = t.testdir({ 'projects.yaml': 'mine' })
  const { code, err } = await sluice(['init', folder])
  t.equal(code, 2)
  t.match(err, `${join(folder, 'projects.yaml')} is already there. Nothing was written`)
  t.equal(readFileSync(join(folder, 'projects.yaml'), 'utf8'), 'mine')
  t.notOk(existsSync(join(folder, 'gateway.yaml')))
  mkdirSync(join(folder, 'sub', 'policies'), { recursive: true })
  t.match((await sluice(['init', join(folder, 'sub')])).err, /policies is already there/)
  t.match(
    (await sluice(['init', join(folder, 'projects.yaml')])).err,
    /cannot be written: (it is not a folder|something else)/,
  )
})

t.test('init reports a folder that cannot be created', async t => {
  for (const folder of ['/proc/sluice/mine', '/dev/null/mine']) {
    const { code, err } = await sluice(['init', folder])
    t.equal(code, 2, folder)
    t.match(err, /cannot be written: /, folder)
  }
})

t.test('the commands that init suggests work for a folder that begins with a dash', async t => {
  const cli = inProject('dist', 'gateway', 'cli.js')
  const { stdout } = spawnSync(process.execPath, [cli, 'init', '--', '-x'], {
    cwd: t.testdir(),
    encoding: 'utf8',
  })
  t.match(stdout, 'sluice check --config ./-x\n')
})

t.test('serve without a configuration suggests both ways to start', async t => {
  const { code, err } = await sluice(['serve', '--config', join(t.testdir(), 'none')])
  t.equal(code, 1)
  t.match(err, 'There is no configuration at')
  t.match(err, 'sluice serve --upstream http://127.0.0.1:3000')
  t.match(err, 'sluice init')
})

t.test('invalid upstreams and limits are refused with a suggestion', async t => {
  const upstream = ['serve', '--upstream', 'http://127.0.0.1:1']
  for (const [args, sentence] of [
    [['serve', '--upstream', 'localhost:3000'], 'Did you mean http://localhost:3000?'],
    [['serve', '--upstream', '3000'], 'Did you mean http://127.0.0.1:3000?'],
    [['init', '--upstream', 'http://10.0.0.1/app'], 'Did you mean http://10.0.0.1?'],
    [['serve', '--upstream', 'ftp://a'], 'Write it like http://127.0.0.1:3000.'],
    [['init', '--upstream', `http://\${PORT}:1`], 'Write it like http://127.0.0.1:3000.'],
    [[...upstream, '--limit', '100/x'], '"x" is not a unit of time. Write s, m, h or d, such as 100/m.'],
    [[...upstream, '--limit', '5/500ms'], '"ms" is not a unit of time. Write s, m, h or d, such as 100/m.'],
    [[...upstream, '--limit', '100/hout'], 'Did you mean h (hour)?'],
    [[...upstream, '--limit', 'many'], 'Write requests and a length of time, such as 100/m'],
    [[...upstream, '--limit', '0/s'], 'from 1 to 1,000,000,000 requests in 1 second to 31 days'],
    [[...upstream, '--limit', '1/32d'], 'from 1 to 1,000,000,000 requests in 1 second to 31 days'],
    [
      [...upstream, '--limit', '5/60s', '--limit', '6/m'],
      '--limit 5/60s and --limit 6/m are both per minute.',
    ],
    [[...upstream, ...'123456789'.split('').flatMap(n => ['--limit', `1/${n}m`])], '8 times at most'],
    [[...upstream, '--config', 'config'], '--upstream runs without files: leave --config out.'],
    [['serve', '--limit', '1/s'], '--limit needs --upstream.'],
  ] as const) {
    const { code, err } = await sluice(args)
    t.equal(code, 2, args.join(' '))
    t.match(err, sentence)
  }
  const { err } = await sluice(['serve', '--upstream', 'http://me:secret@a'])
  t.match(err, '--upstream takes no user and password')
  t.notMatch(err, 'secret')
})

t.test('check warns of an upstream that is the gateway itself', async t => {
  const folder = join(t.testdir(), 'mine')
  await sluice(['init', folder, '--upstream', 'http://localhost:8080'])
  const { code, out, err } = await sluice(['check', '--config', folder, '--strict'])
  t.equal(code, 1)
  t.match(
    out + err,
    /gateway\.yaml:9:\d+ upstreams\.app.*: warning: http:\/\/localhost:8080 has the port of this gateway itself/,
  )
  const other = await sluice(['check', '--config', folder, '--strict'], { env: { PORT: '8090' } })
  t.equal(other.code, 0)
})

t.test('a gateway whose upstream is itself refuses to start', async t => {
  const port = await freePort()
  const gateway = await serveProcess(t, ['--upstream', `http://localhost:${port}`], {
    PORT: `${port}`,
    ADMIN_PORT: '0',
  })
  t.same(await gateway.exited(), [1, null])
  t.match(gateway.out(), 'is this gateway itself: each request would come back to it')
})
