/** The gateway under soak: the built command in a process of its own, on a configuration that reloads change. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure, inProject } from '../lib/run.mjs'

const POLICIES = {
  'project-limits.yaml': `version: 1
kind: project-limits
buckets: { catch-all: ["*"] }
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas: { catch-all: { burst: 100000, sustained: 6000000 } }
`,
  'in-flight.yaml': `version: 1
kind: in-flight
rules: [{ id: work, match: [POST /work], key: [project], max: 4, mode: enforce, slotTtl: 5s }]
`,
  'volumetric.yaml': `version: 1
kind: volumetric
rules:
  - id: flood
    match: [POST /flood]
    key: [client-ip]
    quota: { requests: 20, per: 10s }
    mode: enforce
`,
}

/**
 * @param folder for its configuration
 * @returns addresses, `reload`, `report` (what it holds), `faults` (what it logged as an error) and `stop`
 */
export async function startGateway(folder, { upstream, redis }) {
  mkdirSync(join(folder, 'policies'))
  for (const [name, text] of Object.entries(POLICIES)) writeFileSync(join(folder, 'policies', name), text)
  writeFileSync(
    join(folder, 'projects.yaml'),
    'version: 1\nprojects: [{ id: soak, plan: growth, environment: production, hosts: [soak.localhost] }]\n',
  )
  let version = 0
  const configure = () => {
    version += 1
    writeFileSync(join(folder, 'gateway.yaml'), configText(upstream, redis, version))
  }
  configure()

  const args = [
    '--expose-gc',
    '--disable-warning=ExperimentalWarning',
    '--import',
    inProject('scripts', 'soak', 'probe.mjs'),
  ]
  const command = [inProject('dist', 'gateway', 'cli.js'), 'serve', '--config', folder]
  const child = spawn(process.execPath, [...args, ...command], {
    env: { PATH: process.env.PATH, DATA_DIR: folder },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  process.on('exit', () => child.kill('SIGKILL'))
  const faults = []
  let ready
  const listening = new Promise(resolve => {
    ready = resolve
  })
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', line => {
      const [, url, adminUrl] = /Sluice is ready on (\S+), admin on ([^\s"]+)/.exec(line) ?? []
      if (url) ready({ url, adminUrl })
      if (!line.startsWith('{') || JSON.parse(line).level >= 50) faults.push(line)
    })
  }
  const ended = once(child, 'exit')
  const { url, adminUrl } =
    (await Promise.race([listening, ended.then(() => undefined), patience()])) ??
    fail(`the gateway did not start:\n${faults.join('\n')}`)
  const isRunning = () => child.exitCode === null && child.signalCode === null
  return {
    url,
    adminUrl,
    faults,
    isRunning,
    reload() {
      configure()
      child.kill('SIGHUP')
    },
    async report() {
      if (!isRunning()) throw new Failure(`the gateway is gone (${child.exitCode ?? child.signalCode})`)
      child.send('report')
      const [report] =
        (await Promise.race([once(child, 'message'), patience()])) ?? fail('the gateway does not report')
      const metrics = await read(`${adminUrl}/metrics`)
      const slots = [...metrics.matchAll(/^sluice_inflight\{.*\} (\d+)$/gm)]
      return { ...report, slots: slots.reduce((sum, [, count]) => sum + Number(count), 0) }
    },
    /** Ends it as an operator would; resolves to its exit code, or undefined when it does not end. */
    async stop() {
      child.kill('SIGTERM')
      return (await Promise.race([ended, patience()]))?.[0]
    },
    kill: () => child.kill('SIGKILL'),
  }
}

/** Resolves to undefined when the gateway has had time enough, also on a slow and busy machine. */
function patience() {
  return sleep(60_000, undefined, { ref: false })
}

function fail(sentence) {
  throw new Failure(sentence)
}

/** On a connection of its own, which does not stay to be counted. */
async function read(url) {
  const [answer] = await once(get(url, { agent: false, timeout: 60_000 }), 'response')
  return (await answer.toArray()).join('')
}

/**
 * Every version closes the upstream's connections and opens it anew; none comes twice, so that what a version leaves behind
 * adds up. Whether the gateway keeps up is not asked here: it runs beside its clients and its upstream, maybe on one core.
 */
function configText(upstream, redis, version) {
  return `version: 1
listen: { host: 127.0.0.1, port: 0, maxEventLoopDelay: 30s }
admin: { host: 127.0.0.1, port: 0 }
redis: ${redis}
upstreams: { app: { url: "${upstream}", timeouts: { connect: 5s, head: 3s, idle: ${2000 + version}ms } } }
routes: [{ path: /**, upstream: app }]
drain: 2s
log: { decisions: 0.001 }
`
}
