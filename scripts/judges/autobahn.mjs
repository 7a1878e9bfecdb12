/**
 * Autobahn's fuzzing client against a WebSocket echo server, directly and through the gateway: the results must not
 * differ.
 */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { WebSocketServer } from 'ws'
import { startGateway } from './gateway.mjs'
import { wstest } from './install.mjs'
import { finish } from './processes.mjs'

const SECONDS = 420
/** All but 12 and 13: compression is between the endpoints, so a few of its cases are representative. */
const CASES = [
  '1.*',
  '2.*',
  '3.*',
  '4.*',
  '5.*',
  '6.*',
  '7.*',
  '9.*',
  '10.*',
  '12.1.1',
  '12.1.10',
  '12.2.5',
  '13.3.5',
]
const MAX_PAYLOAD = 64 * 1024 * 1024
/** What is compared of each case's report: the verdict, how the connection ended, and the frames received. */
const SEEN = [
  'behavior',
  'behaviorClose',
  'remoteCloseCode',
  'remoteCloseReason',
  'wasClean',
  'rxFrameStats',
  'droppedByMe',
]

/** @returns what the judge found: a row for the table, and a sentence for each difference */
export async function judgeAutobahn(folder) {
  const { python, args, env } = await wstest()
  const upstream = new WebSocketServer({
    host: '127.0.0.1',
    port: 0,
    perMessageDeflate: true,
    maxPayload: MAX_PAYLOAD,
    maxFragments: 0,
  })
  upstream.on('connection', socket => {
    socket
      .on('error', () => undefined)
      .on('message', (data, binary) => socket.send(data, { binary }, () => undefined))
  })
  await once(upstream, 'listening')
  const { port } = upstream.address()
  const gateway = await startGateway(folder, `http://127.0.0.1:${port}`)
  try {
    const outdir = join(folder.path, 'autobahn')
    const spec = join(folder.path, 'autobahn.json')
    const servers = [
      { agent: 'direct', url: `ws://127.0.0.1:${port}` },
      { agent: 'gateway', url: `ws://127.0.0.1:${gateway.port}` },
    ]
    writeFileSync(spec, JSON.stringify({ outdir, servers, cases: CASES, 'exclude-cases': [] }))
    const { isCut, code, stderr } = await finish(
      python,
      [...args, '--mode', 'fuzzingclient', '--spec', spec],
      { seconds: SECONDS, env, cwd: folder.path },
    )
    if (isCut) throw new Error(`Autobahn took more than ${SECONDS} s`)
    if (code !== 0) throw new Error(`Autobahn ended with ${code}: ${stderr.slice(-500)}`)
    return compare(readReports(outdir), gateway)
  } finally {
    await gateway.stop()
    for (const socket of upstream.clients) socket.terminate()
    upstream.close()
  }
}

function compare({ direct, gateway }, { isRunning }) {
  const faults = []
  if (!isRunning()) faults.push('Autobahn: the gateway ended')
  if (Object.keys(direct).length !== Object.keys(gateway).length)
    faults.push('Autobahn: not as many cases were played at both')
  for (const [id, seen] of Object.entries(direct)) {
    for (const what of SEEN) {
      const [one, other] = [seen[what], gateway[id]?.[what]]
      if (isDeepStrictEqual(one, other)) continue
      faults.push(`Autobahn ${id}, ${what}: ${JSON.stringify(one)} directly, ${JSON.stringify(other)} here`)
    }
  }
  return {
    row: [
      'Autobahn, WebSocket',
      `${Object.keys(gateway).length} cases`,
      `ws alone: ${failures(direct)}`,
      failures(gateway),
      faults.length === 0 ? 'no difference' : `${faults.length} differences`,
    ],
    faults,
    notes: Object.entries(gateway)
      .filter(([id, { behavior }]) => behavior === 'FAILED' && direct[id]?.behavior === 'FAILED')
      .map(([id]) => `fails at both: Autobahn ${id}`),
  }
}

function failures(reports) {
  return `${Object.values(reports).filter(({ behavior }) => behavior === 'FAILED').length} failed`
}

function readReports(outdir) {
  const index = JSON.parse(readFileSync(join(outdir, 'index.json'), 'utf8'))
  const reports = {}
  for (const [agent, cases] of Object.entries(index)) {
    reports[agent] = {}
    for (const [id, { reportfile, ...verdict }] of Object.entries(cases)) {
      reports[agent][id] = { ...JSON.parse(readFileSync(join(outdir, reportfile), 'utf8')), ...verdict }
    }
  }
  return reports
}
