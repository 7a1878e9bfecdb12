/**
 * Third-party clients against an upstream with hand-written responses, directly and through the gateway: same results.
 */
import { existsSync, mkdirSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { inProject } from '../lib/run.mjs'
import { CASES, linesOf, REUSE, resultsOf } from './cases.mjs'
import { curl, curlConnections } from './curl.mjs'
import { startGateway } from './gateway.mjs'
import { CACHE, Missing, needs, python3 } from './install.mjs'
import { finish } from './processes.mjs'
import { startUpstream } from './upstream.mjs'

const CLIENT_S = 60
const BUILD_S = 180
const SOURCES = inProject('scripts', 'judges', 'clients')

/** @returns what the judge found: a row for each client, and a sentence for each difference */
export async function judgeClients(folder) {
  const rows = []
  const faults = []
  for (const tls of [false, true]) {
    const upstream = await startUpstream(tls ? folder : undefined)
    const plain = tls ? await startUpstream() : upstream
    const gateway = await startGateway(folder, `http://127.0.0.1:${plain.port}`, { tls })
    try {
      for (const [name, make] of Object.entries(clients(tls, folder))) {
        const found = await judge(make, tls ? 'https' : 'http', upstream.port, gateway.port)
        const label = `${name}${tls ? ', TLS' : ''}`
        rows.push([label, ...found.row])
        faults.push(...found.faults.map(text => `${label}: ${text}`))
      }
      if (!gateway.isRunning()) faults.push('the gateway ended')
    } finally {
      await gateway.stop()
      upstream.stop()
      plain.stop()
    }
  }
  return { rows, faults, notes: [] }
}

function clients(tls, folder) {
  const ofCurl = version => async () => {
    needs('curl', 'curl is not here: apt-get install curl')
    const connections = (base, cases) => curlConnections(version, base, cases)
    return { play: curl(version, folder), connections }
  }
  return {
    ...(tls ? {} : { 'curl --http1.0': ofCurl('--http1.0') }),
    'curl --http1.1': ofCurl('--http1.1'),
    'curl --http2': ofCurl('--http2'),
    'Java HttpClient': () => program(java),
    'Go net/http': () => program(go),
    'Python aiohttp': () => program(() => python('aiohttp')),
    'Python requests': () => program(() => python('requests')),
  }
}

async function judge(make, scheme, upstreamPort, gatewayPort) {
  let client
  try {
    client = await make()
  } catch (error) {
    if (!(error instanceof Missing)) throw error
    return { row: ['0 cases', '', '', `skipped: ${error.message}`], faults: [] }
  }
  const url = port => `${scheme}://127.0.0.1:${port}`
  const direct = await client.play(url(upstreamPort), CASES)
  const through = await client.play(url(gatewayPort), CASES)
  const counts = []
  for (const port of [upstreamPort, gatewayPort]) counts.push(await client.connections(url(port), REUSE))
  const faults = []
  for (const name of Object.keys(CASES)) {
    if (direct[name] === through[name]) continue
    faults.push(`${name}: directly ${direct[name]}; through the gateway ${through[name]}`)
  }
  const played = Object.values(direct).filter(text => text !== 'skipped')
  const failed = played.filter(text => text.startsWith('error'))
  if (failed.length > 0) faults.push(`directly, too: ${failed.join('; ')}`)
  if (counts[1] > counts[0]) faults.push(`${counts[1]} connections where ${counts[0]} do`)
  return {
    row: [
      `${played.length} cases`,
      `${Object.keys(REUSE).length} requests: connections ${counts[0]}`,
      `${counts[1]}`,
      faults.length === 0 ? 'the same' : `${faults.length} differences`,
    ],
    faults,
  }
}

/** A client that reads cases on stdin and prints its results. */
async function program(make) {
  const [command, ...args] = await make()
  const play = async (base, cases) => {
    const ran = await finish(command, [...args, base], { seconds: CLIENT_S, input: `${linesOf(cases)}\n` })
    if (ran.code !== 0) throw new Error(`${command} ended with ${ran.code}: ${ran.stderr.slice(-500)}`)
    return resultsOf(ran.stdout)
  }
  return { play, connections: (base, cases) => countConnections(base, url => play(url, cases)) }
}

/** How many connections a client opens, counted by a relay in between. */
async function countConnections(base, play) {
  const { protocol, port } = new URL(base)
  let count = 0
  const relay = createServer(socket => {
    count += 1
    const on = connect(port, '127.0.0.1')
    socket.on('error', () => on.destroy()).pipe(on)
    on.on('error', () => socket.destroy()).pipe(socket)
  })
  await new Promise(resolve => relay.listen(0, '127.0.0.1', resolve))
  try {
    await play(`${protocol}//127.0.0.1:${relay.address().port}`)
    return count
  } finally {
    relay.close()
  }
}

async function java() {
  needs('javac', 'Java is not here: apt-get install default-jdk-headless')
  const classes = join(CACHE, 'java')
  await build('javac', ['-d', classes, join(SOURCES, 'Ask.java')], 'the Java client does not compile')
  return ['java', '-cp', classes, 'Ask']
}

async function go() {
  needs('go', 'Go is not here: apt-get install golang-go')
  const binary = join(CACHE, 'ask-go')
  await build('go', ['build', '-o', binary, join(SOURCES, 'ask.go')], 'the Go client does not compile')
  return [binary]
}

async function python(library) {
  return [await python3(), join(SOURCES, 'ask.py'), library]
}

const built = new Set()
async function build(command, args, sentence) {
  if (built.has(command)) return
  if (!existsSync(CACHE)) mkdirSync(CACHE, { recursive: true })
  const { code, stderr } = await finish(command, args, { seconds: BUILD_S })
  if (code !== 0) throw new Error(`${sentence}: ${stderr}`)
  built.add(command)
}
