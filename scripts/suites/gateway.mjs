/** A gateway with the embedded directory and no limits, so that the suites test the API itself. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isError, serve } from '../lib/serve.mjs'

const CONFIG = `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0, key: suites-admin-key-0123 }
upstreams: { directory: { embedded: directory } }
routes: [{ path: /api/**, upstream: directory }]
identify: [host]
unknownProject: enterprise
projects: projects.yaml
policies: policies
`

/** Keys of this gateway only. */
export const KEYS = { management: 'suites-management-key-0123', admin: 'suites-admin-key-0123' }

/** @returns addresses, faults (what it logged as an error) and `stop` */
export async function startGateway(folder) {
  mkdirSync(join(folder, 'policies'))
  writeFileSync(join(folder, 'gateway.yaml'), CONFIG)
  writeFileSync(join(folder, 'projects.yaml'), 'version: 1\nprojects: []\n')
  // Nothing is ever connected or delivered: no server listens on this port.
  const nowhere = 'http://127.0.0.1:9'
  const faults = []
  const { child, ended, url, adminUrl } = await serve(folder, {
    env: {
      API_KEYS: KEYS.management,
      EXTERNAL_CLIENT_ID: 'suites',
      EXTERNAL_CLIENT_SECRET: 'suites',
      EXTERNAL_TOKEN_URL: nowhere,
      EXTERNAL_API_URL: nowhere,
    },
    onLine(line) {
      if (isError(line)) faults.push(line)
    },
  })
  return {
    url,
    adminUrl,
    faults,
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}
