/**
 * `npm run soak [-- --seconds 60 --leg tls]`: aborts, resets, slow readers, WebSockets, slots, reloads and a Redis that
 * pauses and dies, against the built gateway in each of its forms, which share the seconds. Prints what each process
 * holds before and after, and fails if it has grown.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { freePort } from './bench/processes.mjs'
import { Failure, onPath, say, script } from './lib/run.mjs'
import { startGateway } from './soak/gateway.mjs'
import { manyHosts } from './soak/hosts.mjs'
import { soak } from './soak/leg.mjs'
import { startRedis } from './soak/redis.mjs'
import { startUpstream } from './soak/upstream.mjs'

/** By name: what `listen` has besides host and port, and what is done. */
const LEGS = {
  plain: { listen: () => '', act: soak },
  tls: { listen: folder => `, tls: ${certificate(folder)}`, act: soak },
  workers: { listen: () => ', workers: 2', act: soak },
  'workers-tls': { listen: folder => `, workers: 2, tls: ${certificate(folder)}`, act: soak },
  hosts: { listen: () => '', act: manyHosts },
}

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '600' }, leg: { type: 'string', multiple: true } },
})
const seconds = Number(values.seconds)
const legs = values.leg ?? Object.keys(LEGS)

await script(async () => {
  if (!(seconds > 0)) throw new Failure('--seconds takes a positive number')
  const unknown = legs.find(leg => !Object.hasOwn(LEGS, leg))
  if (unknown !== undefined) throw new Failure(`--leg takes ${Object.keys(LEGS).join(', ')}; not ${unknown}`)
  for (const name of ['redis-server', 'redis-cli', 'openssl'])
    if (!onPath(name)) throw new Failure(`The soak needs ${name}: apt-get install ${name}`)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-soak-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  // Ends through the exit handlers, which stop every child process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
  for (const leg of legs) {
    say(`${leg}:`)
    await run(leg, join(folder, leg))
  }
})

async function run(leg, folder) {
  mkdirSync(folder)
  const redis = startRedis(folder, await freePort())
  const upstream = await startUpstream()
  let gateway
  try {
    const { listen, act } = LEGS[leg]
    gateway = await startGateway(folder, { upstream: upstream.url, redis: redis.url, listen: listen(folder) })
    await act(gateway, redis, seconds / legs.length)
  } finally {
    gateway?.kill()
    redis.stop()
    upstream.stop()
  }
}

/** A new certificate, as gateway.yaml refers to it. */
function certificate(folder) {
  const [cert, key] = ['cert.pem', 'key.pem'].map(name => join(folder, name))
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const names = ['-days', '1', '-subj', '/CN=soak.localhost', '-keyout', key, '-out', cert]
  execFileSync('openssl', ['req', '-x509', ...curve, ...names], { stdio: 'ignore' })
  return `{ cert: ${cert}, key: ${key} }`
}
