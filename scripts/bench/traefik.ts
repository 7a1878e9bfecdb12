/** Traefik with two rate-limit middlewares: each counts by itself, by the request's host as nginx does here. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PeerSettings } from './configs.js'

/** Writes Traefik's two files, the second named in the first, and returns the path of the first. */
export function traefikConfig(folder: string, { port, upstreamPort, limits }: PeerSettings): string {
  const [second, minute] = limits === 'tight' ? [1, 1] : [1_000_000, 60_000_000]
  const [main, routes] = [join(folder, 'traefik.yaml'), join(folder, 'traefik-routes.yaml')]
  written(routes, {
    http: {
      routers: { all: { rule: 'PathPrefix(`/`)', service: 'app', middlewares: ['second', 'minute'] } },
      middlewares: { second: limit(second, '1s'), minute: limit(minute, '1m') },
      services: { app: { loadBalancer: { servers: [{ url: `http://127.0.0.1:${upstreamPort}` }] } } },
    },
  })
  written(main, {
    global: { checkNewVersion: false, sendAnonymousUsage: false },
    entryPoints: { in: { address: `127.0.0.1:${port}` } },
    providers: { file: { filename: routes, watch: false } },
    log: { level: 'ERROR' },
  })
  return main
}

const limit = (average: number, period: string) => ({
  rateLimit: { average, period, burst: average, sourceCriterion: { requestHost: true } },
})

/** JSON is YAML, too, which is what Traefik reads. */
function written(file: string, value: object): void {
  writeFileSync(file, JSON.stringify(value))
}
