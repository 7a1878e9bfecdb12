/** Requests for hosts of no known project, each a different one: what they leave behind must be bounded. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { Failure, say } from '../lib/run.mjs'
import type { SoakedGateway, SoakedRedis } from './gateway.js'

const HOSTS = 200_000
const CONNECTIONS = 4
const BATCH = 50
const MB = 1024 * 1024
/** A hundred hosts are counted separately, all others together: only compiled code and metrics grow. */
const HEAP_MAY_GROW = 4 * MB
/** Counters in Redis: two windows in one key for each host counted separately, and for all others. */
const KEYS_MAY_GROW = 110

/** @throws {Failure} unless memory and Redis hold the same after 200,000 hosts as before, within the limits above */
export async function manyHosts(gateway: SoakedGateway, redis: SoakedRedis): Promise<void> {
  await flood(gateway.url, 'warm', 2_000)
  const before = await held(gateway, redis)
  say(`${HOSTS} hosts of unknown projects ...`)
  const statuses = await flood(gateway.url, 'host', HOSTS)
  const after = await held(gateway, redis)
  const grown = { heap: after.heap - before.heap, keys: after.keys - before.keys }
  say(
    `answers: ${JSON.stringify(statuses)}; heap ${(grown.heap / MB).toFixed(1)} MB more, Redis keys ${grown.keys} more`,
  )
  if (grown.heap > HEAP_MAY_GROW) throw new Failure('the heap grew with the hosts')
  if (grown.keys > KEYS_MAY_GROW) throw new Failure('the keys in Redis grew with the hosts')
}

async function held(gateway: SoakedGateway, redis: SoakedRedis) {
  const { processes } = await gateway.report()
  return { heap: processes.reduce((sum, { held }) => sum + held.heapUsed, 0), keys: await redis.keys() }
}

/** Pipelined on a few connections. Resolves to the number of responses by status. */
async function flood(url: string, name: string, many: number): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {}
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async (_, at) => {
      const { hostname, port } = new URL(url)
      const socket = connect(Number(port), hostname).setEncoding('latin1')
      await once(socket, 'connect')
      let rest = ''
      let left = 0
      let whole: (value?: unknown) => void = () => undefined
      socket.on('data', (text: string) => {
        const lines = (rest + text).split('\r\n')
        rest = lines.pop() ?? ''
        for (const line of lines) {
          const status = /HTTP\/1\.1 (\d{3}) /.exec(line)?.[1]
          if (status === undefined) continue
          statuses[status] = (statuses[status] ?? 0) + 1
          left -= 1
        }
        if (left === 0) whole()
      })
      for (let sent = at * BATCH; sent < many; sent += CONNECTIONS * BATCH) {
        const hosts = Array.from(
          { length: Math.min(BATCH, many - sent) },
          (_, i) => `${name}-${sent + i}.example`,
        )
        left = hosts.length
        const answered = new Promise(resolve => {
          whole = resolve
        })
        socket.write(hosts.map(host => `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`).join(''))
        await answered
      }
      socket.destroy()
    }),
  )
  return statuses
}
