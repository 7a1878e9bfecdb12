/**
 * Autobahn's fuzzing client against a WebSocket echo server, directly and through the gateway: the results must not
 * differ.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { WebSocketServer } from 'ws'
import { finish } from '../../test/helpers/launch.js'
import { wstest } from './install.js'
import { type Found, type Judge, listening, startGateway } from './judge.js'

const SECONDS = 420
/** All but 12 and 13: compression is between the endpoints, so a few of its cases are representative. */
const CASES = '1.* 2.* 3.* 4.* 5.* 6.* 7.* 9.* 10.* 12.1.1 12.1.10 12.2.5 13.3.5'.split(' ')
const MAX_PAYLOAD = 64 * 1024 * 1024

/** The reports of the cases at one server, by case. */
type Reports = Record<string, Record<string, unknown>>

/** What is compared of each case's report: the verdict, how the connection ended, and the frames received. */
const SEEN = [
  ...['behavior', 'behaviorClose', 'remoteCloseCode', 'remoteCloseReason'],
  ...['wasClean', 'rxFrameStats', 'droppedByMe'],
]

export const judgeAutobahn: Judge = async (t, place) => {
  const { python, args, env } = await wstest()
  const server = createServer()
  const port = await listening(t, server)
  const upstream = new WebSocketServer({
    server,
    perMessageDeflate: true,
    maxPayload: MAX_PAYLOAD,
    // Unknown to its types: no limit.
    ...{ maxFragments: 0 },
  })
  upstream.on('connection', socket => {
    socket
      .on('error', () => undefined)
      .on('message', (data, binary) => socket.send(data, { binary }, () => undefined))
  })
  t.teardown(() => {
    for (const socket of upstream.clients) socket.terminate()
  })
  const gateway = await startGateway(t, place, port)
  const [outdir, spec] = [join(place.path, 'autobahn'), join(place.path, 'autobahn.json')]
  const servers = [
    { agent: 'direct', url: `ws://127.0.0.1:${port}` },
    { agent: 'gateway', url: `ws://127.0.0.1:${gateway.port}` },
  ]
  writeFileSync(spec, JSON.stringify({ outdir, servers, cases: CASES, 'exclude-cases': [] }))
  const played = [...args, '--mode', 'fuzzingclient', '--spec', spec]
  const { isCut, code, stderr } = await finish(python, played, { seconds: SECONDS, env, cwd: place.path })
  if (isCut) throw new Error(`Autobahn took more than ${SECONDS} s`)
  if (code !== 0) throw new Error(`Autobahn ended with ${code}: ${stderr.slice(-500)}`)
  const index = JSON.parse(readFileSync(join(outdir, 'index.json'), 'utf8'))
  const found = compare(readReports(outdir, index.direct), readReports(outdir, index.gateway))
  return gateway.isRunning() ? found : { ...found, faults: [...found.faults, 'Autobahn: the gateway ended'] }
}

function compare(direct: Reports, gateway: Reports): Found {
  const faults: string[] = []
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
    rows: [
      [
        'Autobahn, WebSocket',
        `${Object.keys(gateway).length} cases`,
        `ws alone: ${failedIn(direct).length} failed`,
        `${failedIn(gateway).length} failed`,
        faults.length === 0 ? 'no difference' : `${faults.length} differences`,
      ],
    ],
    faults,
    notes: failedIn(gateway)
      .filter(id => failedIn(direct).includes(id))
      .map(id => `fails at both: Autobahn ${id}`),
  }
}

const failedIn = (reports: Reports): string[] =>
  Object.keys(reports).filter(id => reports[id]?.behavior === 'FAILED')

function readReports(outdir: string, cases: Record<string, { reportfile: string }>): Reports {
  const read = ({ reportfile, ...verdict }: { reportfile: string }) => ({
    ...JSON.parse(readFileSync(join(outdir, reportfile), 'utf8')),
    ...verdict,
  })
  return Object.fromEntries(Object.entries(cases).map(([id, report]) => [id, read(report)]))
}
