/**
 * Servers behind the gateway: what a client says about itself with disguised field names must not reach an application.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { freePort } from '../../test/helpers/child-server.js'
import { launch } from '../../test/helpers/launch.js'
import { type Scope, scoped } from '../../test/helpers/scope.js'
import { installPython } from '../lib/python.mjs'
import { inProject } from '../lib/run.mjs'
import { build } from './clients.js'
import { CACHE, Missing, needs } from './install.js'
import { folderIn, type Judge, type Place, startGateway } from './judge.js'

const SOURCES = inProject('scripts', 'judges', 'servers')
const MARKS = [..."!#$%&'*+-.^_`|~"]
const NAMES = [
  ...['x-forwarded-for', 'x-sluice-project', 'x-real-ip', 'x-http-method-override', 'x-original-url'],
  ...['true-client-ip', 'cf-connecting-ip', 'x-ja4-fingerprint'],
]
const PER_REQUEST = 40
const PORT = /port[ =](\d+)|127\.0\.0\.1:(\d+)/

/** By name: starts one that responds with the fields that it got, and resolves to its port. */
const SERVERS: Record<string, (t: Scope, place: Place) => Promise<number>> = {
  'node:http': t => start(t, process.execPath, ['-e', NODE]),
  'Python http.server': t => start(t, 'python3', [join(SOURCES, 'env.py')]),
  gunicorn: t => python(t, 'gunicorn', ['--bind', '127.0.0.1:0', '--chdir', SOURCES, 'env:wsgi']),
  uvicorn: t => python(t, 'uvicorn', ['--port', '0', '--app-dir', SOURCES, 'env:asgi']),
  waitress: t => python(t, 'waitress-serve', ['--listen=127.0.0.1:0', 'env:wsgi']),
  async 'Go net/http'(t) {
    needs('go', 'Go is not here: apt-get install golang-go')
    const binary = join(CACHE, 'env-go')
    await build('go', ['build', '-o', binary, join(SOURCES, 'env.go')], 'the Go server does not compile')
    return start(t, binary, [])
  },
  async 'Java HttpServer'(t) {
    needs('java', 'Java is not here: apt-get install default-jdk-headless')
    return start(t, 'java', [join(SOURCES, 'Env.java')])
  },
  nginx,
}

/** Starts a server that prints its port. */
async function start(t: Scope, command: string, args: readonly string[], env = {}): Promise<number> {
  const server = await launch(command, args, { ready: PORT, env: { ...process.env, ...env } })
  t.teardown(() => server.stop())
  return Number(server.match[1] ?? server.match[2])
}

const NODE = `require('node:http').createServer((req, res) => res.end(Object.entries(req.headers)
  .map(([name, value]) => name + '=' + value).join('\\n')))
  .listen(0, '127.0.0.1', function () { console.log('port ' + this.address().port) })`

/** A row for each server, and a sentence for each forged fact that it saw. */
export const judgeServers: Judge = async (_, place) => {
  const [rows, faults]: [string[][], string[]] = [[], []]
  for (const [name, start] of Object.entries(SERVERS)) {
    const found = await scoped(t => judged(t, place, start)).catch(error => {
      if (!(error instanceof Missing)) throw error
      return { row: ['', '', '', `skipped: ${error.message}`], faults: [] }
    })
    rows.push([name, ...found.row])
    faults.push(...found.faults.map(text => `${name}: ${text}`))
  }
  return { rows, faults }
}

async function judged(t: Scope, place: Place, start: (t: Scope, place: Place) => Promise<number>) {
  const port = await start(t, place)
  const gateway = await startGateway(t, place, port)
  const spellings = NAMES.flatMap(name => [...new Set(MARKS.map(mark => name.replaceAll('-', mark)))])
  const faults: string[] = []
  const forgedAt = async (at: number) => {
    let forged = 0
    for (let i = 0; i < spellings.length; i += PER_REQUEST) {
      const body = await ask(at, spellings.slice(i, i + PER_REQUEST))
      if (at === gateway.port && !/kept/.test(body)) faults.push(`an own field was lost: ${body}`)
      forged += body.split('\n').filter(line => line.includes('forged')).length
    }
    return forged
  }
  const [direct, seen] = [await forgedAt(port), await forgedAt(gateway.port)]
  if (seen > 0) faults.push(`${seen} forged fields were seen`)
  const verdict = faults.length === 0 ? 'none forged' : `${faults.length} faults`
  return { row: [`${spellings.length} spellings`, `${direct} seen`, `${seen} seen`, verdict], faults }
}

function ask(port: number, names: readonly string[]): Promise<string> {
  const forged = Object.fromEntries(names.map(name => [name, 'forged']))
  const headers = { ...forged, 'x-own': 'kept' }
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path: '/env.cgi', headers })
    sent.on('error', reject).on('response', async res => resolve((await res.toArray()).join('')))
    sent.end()
  })
}

function python(t: Scope, program: string, args: readonly string[]): Promise<number> {
  const programs = installPython('judges', join(SOURCES, 'requirements.txt'))
  return start(t, join(programs, program), args, { PYTHONPATH: SOURCES })
}

/** nginx gives configurations and applications a field as `$http_name`. */
async function nginx(t: Scope, place: Place): Promise<number> {
  const command = ['/usr/sbin/nginx', '/usr/bin/nginx'].find(path => existsSync(path))
  if (command === undefined) throw new Missing('nginx is not here: apt-get install nginx-light')
  const port = await freePort()
  const home = folderIn(place, 'nginx')
  const values = [...NAMES, 'x-own'].map(name => `${name}=$http_${name.replaceAll('-', '_')}`)
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path ${home};`)
  const file = join(home, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${home}/pid; error_log stderr notice; events {}
http { access_log off; ${paths.join(' ')} large_client_header_buffers 4 16k; underscores_in_headers on; ignore_invalid_headers off;
server { listen 127.0.0.1:${port}; location / { return 200 "${values.join('\n')}"; } } }`,
  )
  const server = await launch(command, ['-p', home, '-e', 'stderr', '-c', file], { ready: port })
  t.teardown(() => server.stop())
  return port
}
