/** Caddy without limits: its rate limiter is a module that has to be compiled in. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PeerSettings } from './configs.js'

/** Writes Caddy's configuration as JSON; what Caddy keeps goes to `folder`. */
export function caddyConfig(folder: string, { port, upstreamPort }: PeerSettings): string {
  const proxy = { handler: 'reverse_proxy', upstreams: [{ dial: `127.0.0.1:${upstreamPort}` }] }
  const server = {
    listen: [`127.0.0.1:${port}`],
    automatic_https: { disable: true },
    routes: [{ handle: [proxy] }],
  }
  const file = join(folder, 'caddy.json')
  const config = {
    admin: { disabled: true, config: { persist: false } },
    logging: { logs: { default: { level: 'ERROR' } } },
    storage: { module: 'file_system', root: folder },
    apps: { http: { servers: { in: server } } },
  }
  writeFileSync(file, JSON.stringify(config))
  return file
}
