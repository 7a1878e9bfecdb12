/**
 * Servers behind the gateway: what a client says about itself with disguised field names must not reach an application.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { freePort } from '../bench/processes.mjs'
import { installPython } from '../lib/python.mjs'
import { inProject } from '../lib/run.mjs'
import { startGateway } from './gateway.mjs'
import { CACHE, Missing, needs } from './install.mjs'
import { finish, serve } from './processes.mjs'

const SOURCES = inProject('scripts', 'judges', 'servers')
const MARKS = [..."!#$%&'*+-.^_`|~"]
const NAMES = [
  ...['x-forwarded-for', 'x-sluice-project', 'x-real-ip', 'x-http-method-override', 'x-original-url'],
  ...['true-client-ip', 'cf-connecting-ip', 'x-ja4-fingerprint'],
]
const PER_REQUEST = 40
const PORT = /port[ =](\d+)|127\.0\.0\.1:(\d+)/

const SERVERS = {
  'node:http': () => serve(process.execPath, ['-e', NODE], PORT),
  'Python http.server': () => serve('python3', [join(SOURCES, 'env.py')], PORT),
  gunicorn: () => python('gunicorn', ['--bind', '127.0.0.1:0', '--chdir', SOURCES, 'env:wsgi']),
  uvicorn: () => python('uvicorn', ['--port', '0', '--app-dir', SOURCES, 'env:asgi']),
  waitress: () => python('waitress-serve', ['--listen=127.0.0.1:0', 'env:wsgi']),
  'Go net/http': async () => {
    needs('go', 'Go is not here: apt-get install golang-go')
    const binary = join(CACHE, 'env-go')
    mkdirSync(CACHE, { recursive: true })
    const { code, stderr } = await finish('go', ['build', '-o', binary, join(SOURCES, 'env.go')], {
      seconds: 180,
    })
    if (code !== 0) throw new Error(`the Go server does not compile: ${stderr}`)
    return serve(binary, [], PORT)
  },
  'Java HttpServer': () => {
    needs('java', 'Java is not here: apt-get install default-jdk-headless')
    return serve('java', [join(SOURCES, 'Env.java')], PORT)
  },
  nginx,
}

const NODE = `require('node:http').createServer((req, res) => res.end(Object.entries(req.headers)
  .map(([name, value]) => name + '=' + value).join('\\n')))
  .listen(0, '127.0.0.1', function () { console.log('port ' + this.address().port) })`

/** @returns what the judge found: a row for each server, and a sentence for each forged fact that it saw */
export async function judgeServers(folder) {
  const rows = []
  const faults = []
  for (const [name, start] of Object.entries(SERVERS)) {
    const found = await judged(folder, start)
    rows.push([name, ...found.row])
    faults.push(...found.faults.map(text => `${name}: ${text}`))
  }
  return { rows, faults, notes: [] }
}

async function judged(folder, start) {
  let server
  try {
    server = await start(folder)
  } catch (error) {
    if (!(error instanceof Missing)) throw error
    return { row: ['', '', '', `skipped: ${error.message}`], faults: [] }
  }
  const port = server.port ?? Number(server.match[1] ?? server.match[2])
  const gateway = await startGateway(folder, `http://127.0.0.1:${port}`)
  const spellings = NAMES.flatMap(name => [...new Set(MARKS.map(mark => name.replaceAll('-', mark)))])
  const counts = { [port]: 0, [gateway.port]: 0 }
  const faults = []
  try {
    for (const at of Object.keys(counts)) {
      for (let i = 0; i < spellings.length; i += PER_REQUEST) {
        const body = await ask(at, spellings.slice(i, i + PER_REQUEST))
        if (Number(at) === gateway.port && !/kept/.test(body)) faults.push(`an own field was lost: ${body}`)
        counts[at] += body.split('\n').filter(line => line.includes('forged')).length
      }
    }
  } finally {
    await gateway.stop()
    await server.stop()
  }
  const seen = counts[gateway.port]
  if (seen > 0) faults.push(`${seen} forged fields were seen`)
  const verdict = faults.length === 0 ? 'none forged' : `${faults.length} faults`
  return { row: [`${spellings.length} spellings`, `${counts[port]} seen`, `${seen} seen`, verdict], faults }
}

function ask(port, names) {
  const headers = Object.fromEntries(names.map(name => [name, 'forged']))
  return new Promise((resolve, reject) => {
    const sent = request({
      host: '127.0.0.1',
      port,
      path: '/env.cgi',
      headers: { ...headers, 'x-own': 'kept' },
    })
    sent.on('error', reject).on('response', async res => {
      let body = ''
      for await (const chunk of res) body += chunk
      resolve(body)
    })
    sent.end()
  })
}

function python(program, args) {
  const programs = installPython('judges', join(SOURCES, 'requirements.txt'))
  return serve(join(programs, program), args, PORT, { PYTHONPATH: SOURCES })
}

/** nginx gives configurations and applications a field as `$http_name`. */
async function nginx(folder) {
  const command = ['/usr/sbin/nginx', '/usr/bin/nginx'].find(existsSync)
  if (command === undefined) throw new Missing('nginx is not here: apt-get install nginx-light')
  const port = await freePort()
  const home = join(folder.path, 'nginx')
  mkdirSync(home, { recursive: true })
  const values = [...NAMES, 'x-own'].map(name => `${name}=$http_${name.replaceAll('-', '_')}`)
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path ${home};`)
  writeFileSync(
    join(home, 'nginx.conf'),
    `daemon off; master_process off; pid ${home}/pid; error_log stderr notice; events {}
http { access_log off; ${paths.join(' ')} large_client_header_buffers 4 16k; underscores_in_headers on; ignore_invalid_headers off;
server { listen 127.0.0.1:${port}; location / { return 200 "${values.join('\n')}"; } } }`,
  )
  const server = await serve(
    command,
    ['-p', home, '-e', 'stderr', '-c', join(home, 'nginx.conf')],
    /start|nginx\//,
  )
  return { ...server, port }
}
