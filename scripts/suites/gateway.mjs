/** A gateway with the embedded directory and nothing that limits, so that the suites meet the API itself. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure, inProject } from '../lib/run.mjs'

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
  // Nothing is ever connected or delivered: the addresses are of a port where nobody listens.
  const nowhere = 'http://127.0.0.1:9'
  const child = spawn(
    process.execPath,
    [inProject('dist', 'gateway', 'cli.js'), 'serve', '--config', folder],
    {
      env: {
        PATH: process.env.PATH,
        DATA_DIR: folder,
        API_KEYS: KEYS.management,
        EXTERNAL_CLIENT_ID: 'suites',
        EXTERNAL_CLIENT_SECRET: 'suites',
        EXTERNAL_TOKEN_URL: nowhere,
        EXTERNAL_API_URL: nowhere,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  process.on('exit', () => child.kill('SIGKILL'))
  const lines = []
  const faults = []
  const ready = new Promise(resolve => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', line => {
        lines.push(line)
        const [, url, adminUrl] = /Sluice is ready on (\S+), admin on ([^\s"]+)/.exec(line) ?? []
        if (url) resolve({ url, adminUrl })
        if (line.startsWith('{') && JSON.parse(line).level >= 50) faults.push(line)
      })
    }
  })
  const ended = once(child, 'exit')
  const gone = ended.then(() => undefined)
  const addresses = await Promise.race([ready, gone, sleep(60_000, undefined, { ref: false })])
  if (!addresses) throw new Failure(`the gateway did not start:\n${lines.slice(-20).join('\n')}`)
  return {
    ...addresses,
    faults,
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}
