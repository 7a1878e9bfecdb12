/** Redis for one sample: a fresh server on the load core, behind a relay when it is meant to be far away. */
import { Redis } from 'ioredis'
import { inProject } from '../lib/run.mjs'
import { freePort, LOAD_CORE, start } from './processes.mjs'

/** @param away delay in ms in each direction; 0 means none */
export async function startRedis(folder, away = 0) {
  const port = await freePort()
  const args = [
    '--port',
    port,
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
    '--dir',
    folder,
  ].map(String)
  const server = await start(LOAD_CORE, 'redis-server', args, { port })
  const relayed = away === 0 ? port : await freePort()
  const env = { TARGET: String(port), PORT: String(relayed), DELAY_MS: String(away) }
  const file = inProject('scripts', 'bench', 'peers', 'relay.mjs')
  const relay =
    away === 0 ? undefined : await start(LOAD_CORE, process.execPath, [file], { port: relayed, env })
  const client = new Redis(port)
  const info = async (section, name) =>
    Number(new RegExp(`${name}:(\\d+)`).exec(await client.info(section))?.[1])
  return {
    port: relayed,
    url: `redis://127.0.0.1:${relayed}`,
    /** Commands served so far, including this query. */
    commands: () => info('stats', 'total_commands_processed'),
    usedMemory: () => info('memory', 'used_memory'),
    async stop() {
      client.disconnect()
      await relay?.stop()
      await server.stop()
    },
  }
}
