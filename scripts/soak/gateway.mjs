/**
 * The gateway under soak: the built command in processes of its own, with a configuration that every reload changes.
 */
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { get as getSecurely } from 'node:https'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure, inProject } from '../lib/run.mjs'
import { isError, serve } from '../lib/serve.mjs'
import { HOST } from './chance.mjs'

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
 * @param settings.listen what `listen` has besides host and port
 * @returns `url`, `ask`, `reload`, `report` (what its processes hold), `faults` (what it logged as an error) and `stop`
 */
export async function startGateway(folder, settings) {
  mkdirSync(join(folder, 'policies'))
  for (const [name, text] of Object.entries(POLICIES)) writeFileSync(join(folder, 'policies', name), text)
  writeFileSync(
    join(folder, 'projects.yaml'),
    'version: 1\nprojects: [{ id: soak, plan: growth, environment: production, hosts: [soak.localhost] }]\n',
  )
  let version = 0
  const configure = () => {
    version += 1
    writeFileSync(join(folder, 'gateway.yaml'), configText(settings, version))
  }
  configure()

  const faults = []
  const { child, ended, url, adminUrl } = await serve(folder, {
    node: [
      '--expose-gc',
      '--disable-warning=ExperimentalWarning',
      '--import',
      inProject('scripts', 'soak', 'probe.mjs'),
    ],
    onLine(line) {
      if (!line.startsWith('{') || isError(line)) faults.push(line)
    },
  })
  const isRunning = () => child.exitCode === null && child.signalCode === null
  const processes = async () => {
    const { workers = [] } = JSON.parse((await read(`${adminUrl}/state`)).body)
    const named = workers.map(({ pid }, i) => ({ name: `worker ${i + 1}`, pid }))
    return [{ name: workers.length > 0 ? 'supervisor' : 'process', pid: child.pid }, ...named]
  }
  const all = await processes()
  return {
    url,
    faults,
    isRunning,
    /** The status of a request to the project. */
    ask: async path => (await read(url + path, { host: HOST })).status,
    reload() {
      configure()
      child.kill('SIGHUP')
    },
    async report() {
      if (!isRunning()) throw new Failure(`the gateway is gone (${child.exitCode ?? child.signalCode})`)
      const told = await Promise.all(
        all.map(async ({ name, pid }) => ({ name, held: await held(folder, pid) })),
      )
      const { body } = await read(`${adminUrl}/metrics`)
      if (JSON.stringify(await processes()) !== JSON.stringify(all)) throw new Failure('a worker has ended')
      const slots = [...body.matchAll(/^sluice_inflight\{.*\} (\d+)$/gm)]
      return { processes: told, slots: slots.reduce((sum, [, count]) => sum + Number(count), 0) }
    },
    /** Stops it as an operator would; resolves to its exit code, or to undefined when it does not end. */
    async stop() {
      child.kill('SIGTERM')
      return (await Promise.race([ended, patience()]))?.[0]
    },
    kill: () => child.kill('SIGKILL'),
  }
}

/** What probe.mjs reports about its process. */
async function held(folder, pid) {
  const file = join(folder, `held-by-${pid}.json`)
  rmSync(file, { force: true })
  process.kill(pid, 'SIGUSR2')
  for (let i = 0; !existsSync(file); i += 1) {
    if (i > 600) throw new Failure(`process ${pid} does not report`)
    await sleep(100)
  }
  return JSON.parse(readFileSync(file, 'utf8'))
}

/** Resolves to undefined after a time that suffices even on a slow and busy machine. */
function patience() {
  return sleep(60_000, undefined, { ref: false })
}

/** On a connection of its own, which does not stay open to be counted. */
async function read(url, headers = {}) {
  const ask = url.startsWith('https:') ? getSecurely : get
  const sent = ask(url, { agent: false, timeout: 60_000, headers, rejectUnauthorized: false })
  const [answer] = await once(sent, 'response')
  return { status: answer.statusCode, body: (await answer.toArray()).join('') }
}

/**
 * Every version closes the upstream's connections and opens new ones. No version repeats, so that what each leaves
 * behind adds up. maxEventLoopDelay is high: the gateway may share one core with its clients and its upstream.
 */
function configText({ upstream, redis, listen }, version) {
  return `version: 1
listen: { host: 127.0.0.1, port: 0, headTimeout: 3s, maxEventLoopDelay: 30s${listen} }
admin: { host: 127.0.0.1, port: 0 }
redis: ${redis}
upstreams: { app: { url: "${upstream}", timeouts: { connect: 5s, head: 5s, idle: ${2000 + version}ms } } }
routes: [{ path: /**, upstream: app }]
drain: 2s
log: { decisions: 0.001 }
`
}
