/** Memory of connections that wait for a request. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, type TLSSocket } from 'node:tls'
import { residentBytes } from './machine.js'
import type { Sample } from './table.js'

const CONNECTIONS = 1_000
/** Their memory is there before: what the program needs once, and what it keeps for later. */
const FIRST = 200
/** The preface of a client and an empty SETTINGS frame (RFC 9113 section 3.4). */
const OPENING = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
])

/** Opens connections over TLS that have negotiated HTTP/2, and sends nothing else. `bytes` is what each takes. */
export async function idleConnections({ pid, port }: { pid: number; port: number }): Promise<Sample> {
  const sockets: TLSSocket[] = []
  const open = async (count: number) => {
    for (let i = 0; i < count; i++) {
      // From many clients, of which each may have a limit.
      const localAddress = `127.0.1.${1 + (sockets.length % 250)}`
      const address = { port, host: '127.0.0.1', localAddress }
      const socket = connect({ ...address, ALPNProtocols: ['h2'], rejectUnauthorized: false })
      sockets.push(socket)
      await once(socket, 'secureConnect')
      socket.write(OPENING)
      await once(socket, 'data')
    }
    await sleep(1_000)
  }
  try {
    await open(FIRST)
    const before = residentBytes(pid)
    await open(CONNECTIONS)
    return { keys: CONNECTIONS, bytes: (residentBytes(pid) - before) / CONNECTIONS }
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}
