/** Pebble, a small ACME authority, which finds every domain at 127.0.0.1. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { makeCertificate } from './certificates.js'
import { findCommand, freePort, startServer } from './child-server.js'
import { reportMissing } from './missing.js'
import { inProject } from './root.js'
import { temporaryFolder } from './scope.js'

export interface Pebble {
  /** Address of its directory. */
  readonly directory: string
  /** PEM file of the authority of its own certificate. */
  readonly ca: string
  /** Where it looks for HTTP-01 and TLS-ALPN-01. */
  readonly httpPort: number
  readonly tlsPort: number
  /** The root that its certificates lead to, in PEM form. */
  root(): Promise<string>
  kill(): Promise<void>
  start(): Promise<void>
}

/** Undefined, and reported, where it is not installed. */
export async function startPebble(
  t: Test,
  { lifetime = 7_776_000 }: { lifetime?: number } = {},
): Promise<Pebble | undefined> {
  const command = findCommand(['pebble'], [inProject('.cache', 'acme')])
  if (command === undefined) {
    reportMissing(t, 'pebble', 'get it with `npm run services`')
    return undefined
  }
  const folder = temporaryFolder(t, 'pebble')
  const own = makeCertificate(folder, 'pebble')
  const [httpPort, tlsPort, management] = [await freePort(), await freePort(), await freePort()]
  const names = await startNames(t)
  const ask = (url: string) =>
    new Promise<string>((resolve, reject) => {
      get(url, { ca: own.cert, agent: false }, async answer => {
        let text = ''
        for await (const chunk of answer) text += chunk
        resolve(text)
      }).once('error', reject)
    })
  const server = await startServer({
    command,
    args(port, folder) {
      const config = join(folder, 'pebble.json')
      const settings = {
        listenAddress: `127.0.0.1:${port}`,
        managementListenAddress: `127.0.0.1:${management}`,
        certificate: own.certFile,
        privateKey: own.keyFile,
        httpPort,
        tlsPort,
        keyAlgorithm: 'ecdsa',
        profiles: { default: { description: 'the only one', validityPeriod: lifetime } },
      }
      writeFileSync(config, JSON.stringify({ pebble: settings }))
      return ['-config', config, '-dnsserver', `127.0.0.1:${names}`]
    },
    env: () => ({ PEBBLE_VA_NOSLEEP: '1' }),
    answers: port =>
      ask(`https://localhost:${port}/dir`).then(
        () => true,
        () => false,
      ),
  })
  t.teardown(() => server.stop())
  return {
    directory: `https://localhost:${server.port}/dir`,
    ca: own.certFile,
    httpPort,
    tlsPort,
    root: () => ask(`https://localhost:${management}/roots/0`),
    kill: () => server.kill(),
    start: () => server.start(),
  }
}

const HEADER_BYTES = 12
const TYPE_A = 1
/** Its name is that of the question; class IN; no time to live; 127.0.0.1. */
const ADDRESS = Buffer.from([0xc0, HEADER_BYTES, 0, TYPE_A, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1])

const LENGTH_BYTES = 2

/** A name server (RFC 1035, over TCP) for which all names have the address 127.0.0.1, and no other record. */
async function startNames(t: Test): Promise<number> {
  const server = createServer(socket => {
    let seen = Buffer.alloc(0)
    socket.on('error', () => socket.destroy())
    socket.on('data', chunk => {
      seen = Buffer.concat([seen, chunk])
      while (seen.length >= LENGTH_BYTES && seen.length >= LENGTH_BYTES + seen.readUInt16BE(0)) {
        const end = LENGTH_BYTES + seen.readUInt16BE(0)
        socket.write(answerTo(seen.subarray(LENGTH_BYTES, end)))
        seen = seen.subarray(end)
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

function answerTo(query: Buffer): Buffer {
  const end = query.indexOf(0, HEADER_BYTES) + 1
  const hasAddress = query.readUInt16BE(end) === TYPE_A
  const header = Buffer.from([0, 0, 0x84, 0, 0, 1, 0, hasAddress ? 1 : 0, 0, 0, 0, 0])
  query.copy(header, 0, 0, 2)
  const question = query.subarray(HEADER_BYTES, end + 4)
  const answer = Buffer.concat([header, question, hasAddress ? ADDRESS : Buffer.alloc(0)])
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt16BE(answer.length)
  return Buffer.concat([length, answer])
}
