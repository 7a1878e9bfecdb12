/** Redis for one sample: a fresh server on the load core, behind a relay when it is meant to be far away. */
import { Redis } from 'ioredis'
import { freePort } from '../../test/helpers/child-server.js'
import { startRedis } from '../../test/helpers/redis.js'
import type { Scope } from '../../test/helpers/scope.js'
import { LOAD_CORE, moveTo, peerCommand, startOn } from './machine.js'

export interface BenchRedis {
  readonly port: number
  readonly url: string
  /** Commands served so far, including this query. */
  commands(): Promise<number>
  usedMemory(): Promise<number>
}

/** @param away delay in ms in each direction */
export async function startBenchRedis(t: Scope, away = 0): Promise<BenchRedis> {
  const server = await startRedis()
  t.teardown(() => server.stop())
  const client = new Redis(server.port)
  t.teardown(() => client.disconnect())
  const info = async (section: string, name: string) => {
    const line = (await client.info(section)).split('\r\n').find(line => line.startsWith(`${name}:`))
    return Number(line?.split(':')[1])
  }
  moveTo(LOAD_CORE, await info('server', 'process_id'))
  const port = away === 0 ? server.port : await freePort()
  if (away !== 0) {
    const env = { TARGET: String(server.port), PORT: String(port), DELAY_MS: String(away) }
    await startOn(t, LOAD_CORE, peerCommand('relay'), port, env)
  }
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    commands: () => info('stats', 'total_commands_processed'),
    usedMemory: () => info('memory', 'used_memory'),
  }
}
