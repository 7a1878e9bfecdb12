/** Workers that hang, are killed, or lose their supervisor: clients, operators and the port are not affected. */
import { writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { send, startApp } from '../../helpers/http.js'
import { redisUrl } from '../../helpers/redis.js'
import { waitUntil } from '../../helpers/wait.js'

/** Loops forever once a request for /stuck has ended. */
const PLUGIN = `export const plugins = [{
  name: 'sticking', kind: 'observe', schema: { type: 'object', properties: {}, required: [] },
  create: () => ({ finished: ({ facts }) => { while (facts.path === '/stuck'); } }),
}]`
const limits = (quota: number) => `version: 1
kind: project-limits
buckets: { all: ["*"] }
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas: { all: { burst: 1000, sustained: ${quota} } }
`

interface State {
  readonly revision: string
  readonly workers: readonly { readonly pid: number; readonly answers: boolean }[]
}

async function startWorkers(t: Test, redis: string, workerTimeout: string, env = {}) {
  const upstream = await startApp(t, (req, res) => {
    req.resume()
    res.end('done')
  })
  const folder = writeConfig(
    t,
    `version: 1
listen: { host: 127.0.0.1, port: 0, workers: 2, workerTimeout: ${workerTimeout} }
admin: { host: 127.0.0.1, port: 0 }
redis: ${redis}
store: { deadline: 5s, onError: closed }
upstreams: { app: { url: "${upstream}" } }
routes: [{ path: /**, upstream: app }]
plugins: [./sticking.mjs]
observe: [sticking]
`,
    { 'limits.yaml': limits(5000) },
  )
  writeFileSync(join(folder, 'sticking.mjs'), PLUGIN)
  const gateway = await gatewayProcess(t, folder, env)
  const headers = { host: 'acme.localhost' }
  const state = async () => (await send(`${gateway.adminUrl}/state`)).json<State>()
  const pids = async () => (await state()).workers.map(({ pid }) => pid)
  return {
    ...gateway,
    folder,
    state,
    pids,
    /** Resolves when another worker has replaced the one that ended. */
    replaced: (ended: number) =>
      waitUntil(
        'another one',
        async () => {
          const present = await pids()
          return present.length === 2 && !present.includes(ended)
        },
        20_000,
      ),
    ask: (path: string) => send(gateway.url + path, { agent: new Agent(), headers }),
  }
}

/** A connection with a request on it: resolves when the connection has closed. */
function ended(url: string): Promise<void> {
  return new Promise(resolve => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.on('error', () => {}).on('close', () => resolve())
    socket.write('GET /other HTTP/1.1\r\nHost: acme.localhost\r\nConnection: close\r\n\r\n')
    socket.resume()
  })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return (performance.now() - start) / 1000
}

t.test('a stuck worker is reported at once, killed after workerTimeout and replaced', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const gateway = await startWorkers(t, redis, '6s')
  const pids = await gateway.pids()
  await gateway.ask('/stuck')
  const connections = Array.from({ length: 20 }, () => ended(gateway.url))

  const [stuck] = await waitUntil('the stuck worker to be reported', async () => {
    const silent = (await gateway.state()).workers.filter(({ answers }) => !answers)
    return silent.length === 1 ? silent.map(({ pid }) => pid) : undefined
  })
  t.ok(pids.includes(stuck as number))
  for (const path of ['/state', '/slots', '/metrics']) {
    const took = await seconds(async () => {
      const { status, body } = await send(gateway.adminUrl + path)
      t.equal(status, 200, path)
      t.match(
        body,
        new RegExp(`"missing":\\[${stuck}\\]|"pid":${stuck}|sluice_worker_up\\{pid="${stuck}"\\} 0`),
      )
    })
    t.ok(took < 4, `${path} does not wait for the stuck worker, but took ${took.toFixed(1)} s`)
  }
  const reload = await send(`${gateway.adminUrl}/reload`, { method: 'POST' })
  t.equal(reload.status, 422)
  t.match(reload.body, `Worker ${stuck} does not answer.`)

  await waitUntil('the worker to be killed', () => !isAlive(stuck as number), 20_000)
  const told = new RegExp(`"worker":${stuck},"ms":6000,.*A worker does not answer`)
  await waitUntil('the log to say so', () => told.test(gateway.out()))
  const took = await seconds(() => Promise.all(connections))
  t.ok(took < 5, `every connection was answered or reset, ${took.toFixed(1)} s after it`)
  await gateway.replaced(stuck as number)
  t.match(await send(`${gateway.adminUrl}/reload`, { method: 'POST' }), { status: 200 })
  t.equal((await gateway.ask('/other')).status, 200)
})

t.test('a gateway whose workers all are silent is not ready until one answers', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const gateway = await startWorkers(t, redis, '30s')
  const pids = await gateway.pids()
  const readiness = () => send(`${gateway.adminUrl}/readyz`)
  const signal = (name: NodeJS.Signals, some: readonly number[]) => {
    for (const pid of some) process.kill(pid, name)
  }
  t.teardown(() => signal('SIGKILL', pids.filter(isAlive)))
  t.equal((await readiness()).status, 200)
  signal('SIGSTOP', pids)
  await waitUntil(
    'both to be reported',
    async () => (await gateway.state()).workers.every(({ answers }) => !answers),
    30_000,
  )
  t.match(await readiness(), { status: 503, body: 'no worker answers' })
  signal('SIGCONT', pids.slice(1))
  await waitUntil('one to answer', async () => (await readiness()).status === 200, 30_000)
})

t.test('a worker that starts while the configuration keeps changing takes the newest', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const gateway = await startWorkers(t, redis, '10s')
  const [pid] = (await gateway.pids()) as [number]
  process.kill(pid, 'SIGKILL')
  let quota = 5000
  const start = performance.now()
  while (!/A worker takes requests/.test(gateway.out()) && performance.now() - start < 30_000) {
    quota += 1
    writeFileSync(join(gateway.folder, 'policies', 'limits.yaml'), limits(quota))
    t.equal((await send(`${gateway.adminUrl}/reload`, { method: 'POST' })).status, 200)
  }
  t.ok(quota > 5002, 'it changed several times meanwhile')
  t.equal(gateway.out().match(/A worker ended/g)?.length, 1, 'no other worker had to be started')
  const answers = await Promise.all(Array.from({ length: 40 }, () => gateway.ask('/other')))
  const policies = new Set(answers.map(({ headers }) => String(headers['ratelimit-policy'])))
  t.equal(policies.size, 1, 'both have the same configuration')
  t.match([...policies][0], `"all.sustained";q=${quota}`)
})

t.test('workers killed under load leave no client waiting', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const gateway = await startWorkers(t, redis, '10s')
  const connections: Promise<void>[] = []
  for (let round = 0; round < 4; round += 1) {
    for (let i = 0; i < 50; i += 1) connections.push(ended(gateway.url))
    const [pid] = await gateway.pids()
    if (pid === undefined) throw new Error('no worker is left')
    process.kill(pid, 'SIGKILL')
    for (let i = 0; i < 50; i += 1) connections.push(ended(gateway.url))
    await gateway.replaced(pid)
  }
  const took = await seconds(() => Promise.all(connections))
  t.ok(took < 5, `all ended, the last after ${took.toFixed(1)} s`)
})

t.test('workers run with a module that NODE_OPTIONS preloads, however large', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const preload = import.meta.resolve('typescript')
  const gateway = await startWorkers(t, redis, '10s', { NODE_OPTIONS: `--import=${preload}` })
  const started = await gateway.pids()
  t.equal((await gateway.ask('/')).status, 200)
  t.same(await gateway.pids(), started, 'none had to be replaced')
})

t.test('a worker ends with its supervisor, even when it is stuck', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const gateway = await startWorkers(t, redis, '1h')
  const pids = await gateway.pids()
  await gateway.ask('/stuck')
  await gateway.kill()
  await waitUntil('both to be gone', () => !pids.some(isAlive), 10_000)
  t.equal(pids.length, 2)
})

t.test('a stopped worker ends once it is continued, if its supervisor has gone', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const gateway = await startWorkers(t, redis, '1h')
  const [stopped, other] = (await gateway.pids()) as [number, number]
  t.teardown(() => isAlive(stopped) && process.kill(stopped, 'SIGKILL'))
  process.kill(stopped, 'SIGSTOP')
  await gateway.kill()
  await waitUntil('the other to be gone', () => !isAlive(other), 10_000)
  t.ok(isAlive(stopped))
  process.kill(stopped, 'SIGCONT')
  await waitUntil('it to be gone', () => !isAlive(stopped), 10_000)
})

t.test(
  'a worker killed while the configuration is invalid is replaced with the last valid policy',
  async t => {
    const redis = await redisUrl(t)
    if (redis === undefined) return
    const gateway = await startWorkers(t, redis, '10s')
    const { revision } = await gateway.state()
    writeFileSync(join(gateway.folder, 'policies', 'limits.yaml'), 'version: 1\nkind: [\n')
    await waitUntil('the refusal', () => /Configuration refused/.test(gateway.out()))
    for (const pid of await gateway.pids()) {
      process.kill(pid, 'SIGKILL')
      await gateway.replaced(pid)
    }
    const answers = await Promise.all(Array.from({ length: 20 }, () => gateway.ask('/other')))
    for (const { status, headers } of answers) {
      t.match(
        { status, policy: headers['ratelimit-policy'] },
        { status: 200, policy: /"all.sustained";q=5000/ },
      )
    }
    t.equal((await gateway.state()).revision, revision)

    writeFileSync(join(gateway.folder, 'policies', 'limits.yaml'), limits(6000))
    await waitUntil(
      'the mended file to be in force',
      async () => (await gateway.state()).revision !== revision,
    )
    t.match((await gateway.ask('/other')).headers['ratelimit-policy'], /"all.sustained";q=6000/)
  },
)
