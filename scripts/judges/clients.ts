/**
 * Third-party clients against an upstream with hand-written responses, directly and through the gateway: same results.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { HTTP2_WIRES, type Http2Wire } from '../../config/words/words.js'
import { finish } from '../../test/helpers/launch.js'
import { scoped } from '../../test/helpers/scope.js'
import { inProject } from '../lib/run.mjs'
import { CASES, type Cases, linesOf, REUSE, resultsOf } from './cases.js'
import { chromiumClient } from './chromium.js'
import { type Client, countConnections } from './client.js'
import { curl, curlConnections } from './curl.js'
import { CACHE, Missing, needs, python3 } from './install.js'
import { type Found, type Judge, type Place, startGateway } from './judge.js'
import { startUpstream } from './upstream.js'

const CLIENT_S = 60
const BUILD_S = 180
const SOURCES = inProject('scripts', 'judges', 'clients')

export const judgeClients: Judge = async (_, place) => {
  const found = []
  for (const http2 of [undefined, ...HTTP2_WIRES]) found.push(await scoped(t => judgeAll(t, place, http2)))
  return { rows: found.flatMap(({ rows }) => rows), faults: found.flatMap(({ faults }) => faults) }
}

/** Without TLS, or with it and one implementation of HTTP/2. */
async function judgeAll(t: Parameters<Judge>[0], place: Place, http2: Http2Wire | undefined): Promise<Found> {
  const tls = http2 !== undefined
  const upstream = await startUpstream(t, tls ? place : undefined)
  const plain = tls ? await startUpstream(t) : upstream
  const gateway = await startGateway(t, place, plain, { tls, http2 })
  const [rows, faults]: [string[][], string[]] = [[], []]
  for (const [name, make] of Object.entries(clients(tls, place))) {
    const found = await judge(make, tls ? 'https' : 'http', upstream, gateway.port)
    const label = `${name}${tls ? `, TLS, \`http2: ${http2}\`` : ''}`
    rows.push([label, ...found.row])
    faults.push(...found.faults.map(text => `${label}: ${text}`))
  }
  if (!gateway.isRunning()) faults.push('the gateway ended')
  return { rows, faults }
}

function clients(tls: boolean, { path }: Place): Record<string, () => Promise<Client>> {
  const ofCurl = (version: string) => async (): Promise<Client> => {
    needs('curl', 'curl is not here: apt-get install curl')
    return {
      play: (base, cases) => curl(version, path, base, cases),
      connections: (base, cases) => curlConnections(version, base, cases),
    }
  }
  return {
    ...(tls ? {} : { 'curl --http1.0': ofCurl('--http1.0') }),
    'curl --http1.1': ofCurl('--http1.1'),
    'curl --http2': ofCurl('--http2'),
    'Java HttpClient': () => program(java()),
    'Go net/http': () => program(go()),
    'Python aiohttp': () => program(python('aiohttp')),
    'Python httpx': () => program(python('httpx')),
    'Python requests': () => program(python('requests')),
    Chromium: async () => chromiumClient(),
  }
}

async function judge(make: () => Promise<Client>, scheme: string, upstream: number, gateway: number) {
  let client: Client
  try {
    client = await make()
  } catch (error) {
    if (!(error instanceof Missing)) throw error
    return { row: ['0 cases', '', '', `skipped: ${error.message}`], faults: [] }
  }
  const [directly, here] = [`${scheme}://127.0.0.1:${upstream}`, `${scheme}://127.0.0.1:${gateway}`]
  const direct = await client.play(directly, CASES)
  const through = await client.play(here, CASES)
  const expected = await client.connections(directly, REUSE)
  const opened = await client.connections(here, REUSE)
  const faults = Object.keys(CASES)
    .filter(name => direct[name] !== through[name])
    .map(name => `${name}: directly ${direct[name]}; through the gateway ${through[name]}`)
  const played = Object.values(direct).filter(text => text !== 'skipped')
  const failed = played.filter(text => text.startsWith('error'))
  if (failed.length > 0) faults.push(`directly, too: ${failed.join('; ')}`)
  if (opened > expected) faults.push(`${opened} connections where ${expected} do`)
  return {
    row: [
      `${played.length} cases`,
      `${Object.keys(REUSE).length} requests: connections ${expected}`,
      `${opened}`,
      faults.length === 0 ? 'the same' : `${faults.length} differences`,
    ],
    faults,
  }
}

/** A client that reads cases on stdin and prints its results. */
async function program(made: Promise<readonly [string, ...string[]]>): Promise<Client> {
  const [command, ...args] = await made
  const play = async (base: string, cases: Cases) => {
    const input = `${linesOf(cases)}\n`
    const { code, stdout, stderr } = await finish(command, [...args, base], { seconds: CLIENT_S, input })
    if (code !== 0) throw new Error(`${command} ended with ${code}: ${stderr.slice(-500)}`)
    return resultsOf(stdout)
  }
  return { play, connections: (base, cases) => countConnections(base, url => play(url, cases)) }
}

async function java() {
  needs('javac', 'Java is not here: apt-get install default-jdk-headless')
  const classes = join(CACHE, 'java')
  await build('javac', ['-d', classes, join(SOURCES, 'Ask.java')], 'the Java client does not compile')
  return ['java', '-cp', classes, 'Ask'] as const
}

async function go() {
  needs('go', 'Go is not here: apt-get install golang-go')
  const binary = join(CACHE, 'ask-go')
  await build('go', ['build', '-o', binary, join(SOURCES, 'ask.go')], 'the Go client does not compile')
  return [binary] as const
}

async function python(library: string) {
  return [await python3(), join(SOURCES, 'ask.py'), library] as const
}

const built = new Set<string>()

/** Compiles a program of another language, unless this process has done so. */
export async function build(command: string, args: readonly string[], sentence: string): Promise<void> {
  if (built.has(args.join(' '))) return
  mkdirSync(CACHE, { recursive: true })
  const { code, stderr } = await finish(command, args, { seconds: BUILD_S })
  if (code !== 0) throw new Error(`${sentence}: ${stderr}`)
  built.add(args.join(' '))
}
