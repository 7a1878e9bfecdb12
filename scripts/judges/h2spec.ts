/**
 * h2spec in strict mode against the gateway's TLS port, and in the clear: with `http2: own` no case may fail, with `http2: node` none that a
 * bare node:http2 server passes.
 */
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { join } from 'node:path'
import { HTTP2_WIRES } from '../../config/words/words.js'
import { finish } from '../../test/helpers/launch.js'
import { h2spec } from './install.js'
import { type Judge, listening, type Place, startGateway } from './judge.js'

/** 147 cases; those that wait for silence take the time-out below. */
const SECONDS = 240
const CASE_TIMEOUT_S = '3'

/** Without TLS, HTTP/1.1 is spoken on the same port: a wrong preface is a wrong request there, and gets a 400. */
const WRONG_PREFACE = 'http2/3.5 Sends invalid connection preface'

/** Both servers send this response once the request is complete. */
function answer(req: IncomingMessage | Http2ServerRequest, res: ServerResponse | Http2ServerResponse): void {
  req.on('error', () => undefined).resume()
  res.on('error', () => undefined)
  req.on('end', () => res.end('done'))
}

export const judgeH2spec: Judge = async (t, place) => {
  const program = await h2spec()
  const bare = createSecureServer({ cert: place.cert, key: place.key }, answer)
  bare.on('sessionError', () => undefined)
  const barePort = await listening(t, bare)
  const upstream = await listening(t, createServer(answer))
  const gateways = {
    own: await startGateway(t, place, upstream, { tls: true, http2: 'own' }),
    node: await startGateway(t, place, upstream, { tls: true, http2: 'node' }),
  }
  const clear = await startGateway(t, place, upstream, { http2: 'own' })
  // One after the other: cases that wait for silence would disturb each other on a busy machine.
  const direct = await run(program, place, barePort)
  const own = await run(program, place, gateways.own.port)
  const node = await run(program, place, gateways.node.port)
  const inClear = await run(program, place, clear.port, [])
  inClear.failed.delete(WRONG_PREFACE)
  const more = [...node.failed].filter(title => !direct.failed.has(title))
  const both = [...node.failed].filter(title => direct.failed.has(title))
  const ended = HTTP2_WIRES.filter(wire => !gateways[wire].isRunning())
  const areEqual = [own, node, inClear].every(({ cases }) => cases === direct.cases)
  return {
    rows: [
      [
        'h2spec, strict, TLS, `http2: own`',
        `${own.cases} cases`,
        '',
        `${own.failed.size} failed`,
        own.failed.size === 0 ? 'none' : `${own.failed.size} failed`,
      ],
      [
        'h2spec, strict, in the clear',
        `${inClear.cases} cases`,
        '',
        `${inClear.failed.size} failed`,
        inClear.failed.size === 0 ? 'none' : `${inClear.failed.size} failed`,
      ],
      [
        'h2spec, strict, TLS, `http2: node`',
        `${node.cases} cases`,
        `node:http2 alone: ${direct.failed.size} failed`,
        `${node.failed.size} failed`,
        more.length === 0 ? 'no case more' : `${more.length} more`,
      ],
    ],
    faults: [
      ...[...own.failed].map(title => `h2spec, http2: own: ${title}`),
      ...[...inClear.failed].map(title => `h2spec, in the clear: ${title}`),
      ...(clear.isRunning() ? [] : ['h2spec: the gateway in the clear ended']),
      ...more.map(title => `h2spec, http2: node: ${title}`),
      ...ended.map(wire => `h2spec: the gateway with http2: ${wire} ended`),
      ...(areEqual ? [] : ['h2spec: not as many cases were played everywhere']),
    ],
    notes: both.map(title => `fails with http2: node and at node:http2 alone: ${title}`),
  }
}

const TLS = ['--tls', '--insecure']

async function run(program: string, { path }: Place, port: number, tls = TLS) {
  const report = join(path, `h2spec-${port}.xml`)
  const args = ['--strict', ...tls, '--port', String(port), '--timeout', CASE_TIMEOUT_S]
  const { isCut, stderr } = await finish(program, [...args, '--junit-report', report], { seconds: SECONDS })
  if (isCut) throw new Error(`h2spec took more than ${SECONDS} s`)
  let xml: string
  try {
    xml = readFileSync(report, 'utf8')
  } catch {
    throw new Error(`h2spec wrote no report: ${stderr}`)
  }
  const cases = xml.split('<testcase ').slice(1)
  const failed = new Set<string>()
  for (const text of cases) {
    const [element = ''] = text.split('</testcase>', 1)
    if (!/<(failure|error)\b/.test(element)) continue
    const [attributes = ''] = element.split('>', 1)
    const [, section] = /package="([^"]*)"/.exec(attributes) ?? []
    const [, title] = /classname="([^"]*)"/.exec(attributes) ?? []
    failed.add(`${section} ${title}`)
  }
  return { cases: cases.length, failed }
}
