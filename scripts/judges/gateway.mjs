/** The gateway under test: the built command with a configuration of its own and limits that are never reached. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inProject } from '../lib/run.mjs'
import { serve } from './processes.mjs'

const LIMITS = `version: 1
kind: project-limits
buckets: { catch-all: ["*"] }
limits:
  - for: [{}]
    quotas: { catch-all: { burst: 1000000, sustained: 60000000 } }
`

/**
 * A folder that is removed on exit, with a certificate for 127.0.0.1.
 *
 * @returns its path and the PEM texts
 */
export function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-judges-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  execFileSync('openssl', ['req', '-x509', ...curve, ...names, '-keyout', key, '-out', cert], {
    stdio: 'ignore',
  })
  return { path: folder, cert: readFileSync(cert), key: readFileSync(key) }
}

/**
 * Starts the gateway in front of `upstream`.
 *
 * @param folder from makeFolder
 * @param settings tls; headTimeout of the listener; idle: longest pause inside a body
 * @returns its port on 127.0.0.1, `isRunning` and `stop`
 */
export async function startGateway(folder, upstream, settings = {}) {
  const { tls = false, headTimeout = '10s', idle = '60s' } = settings
  const home = mkdtempSync(join(folder.path, 'gateway-'))
  mkdirSync(join(home, 'policies'))
  const secured = tls ? ', tls: { cert: ../cert.pem, key: ../key.pem }' : ''
  const files = {
    'policies/limits.yaml': LIMITS,
    'projects.yaml':
      'version: 1\nprojects: [{ id: judged, plan: growth, environment: production, hosts: [judged.test] }]\n',
    // The judges load the machine as well: that must not look like an overloaded gateway.
    'gateway.yaml': `version: 1
listen: { host: 127.0.0.1, port: 0, maxEventLoopDelay: 1h, headTimeout: ${headTimeout}${secured} }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { app: { url: "${upstream}", timeouts: { idle: ${idle} } } }
routes: [{ path: /**, upstream: app }]
log: { decisions: refused }
drain: 1s
`,
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, name), text)
  const cli = inProject('dist', 'gateway', 'cli.js')
  const { match, ...gateway } = await serve(
    process.execPath,
    [cli, 'serve', '--config', home],
    /Sluice is ready on \w+:\/\/127\.0\.0\.1:(\d+)/,
    { DATA_DIR: home, LOG_LEVEL: 'info', REDIS_URL: '' },
  )
  return { port: Number(match[1]), ...gateway }
}
