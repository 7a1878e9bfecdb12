/**
 * A gateway of several workers on one port, each of which accepts connections. The supervisor accepts none: it watches
 * the workers, runs the embedded services, whose files belong to one process, and serves the admin port, because it is
 * always there and can ask all workers. Workers count together in Redis.
 */
import cluster from 'node:cluster'
import { startAdmin } from '../../admin/server.js'
import type { Configuration } from '../../configured/load.js'
import { Failure } from '../../errors.js'
import { serviceDocuments } from '../../explain/inspect.js'
import { Health } from '../../observe/health.js'
import { Metrics } from '../../observe/metrics.js'
import { latestOf, seldom, warnOf } from '../../observe/untrusted-forwarding.js'
import { overrideRoutes } from '../../overrides/routes.js'
import { Runtime } from '../../overrides/runtime.js'
import { startEmbedded, urlOf } from '../core.js'
import { listenFault } from '../listen-fault.js'
import { liveData } from '../live/live-data.js'
import { Reloader } from '../reload.js'
import type { GatewayOptions, RunningGateway } from '../start.js'
import { describeState } from '../state.js'
import { version } from '../version.js'
import { changeAll } from './change.js'
import { WorkerQuestions } from './questions.js'
import { type Member, WorkerPool } from './worker-pool.js'

export interface SuperviseOptions extends GatewayOptions {
  /** More than one. */
  readonly workers: number
  /** The path given to the command, for the workers to read. */
  readonly configPath: string
  /** Called when no worker is left and none can be started. */
  hopeless(error: Error): void
}

/** Resolves when every worker takes requests; rejects with the error of the first that cannot start. */
export async function superviseGateway(options: SuperviseOptions): Promise<RunningGateway> {
  if (!cluster.isPrimary) {
    throw new Failure(
      'This process is itself a worker of a cluster, such as pm2 starts in its cluster mode: start one plain process, or set listen.workers to 1.',
    )
  }
  const { first, load, workers, secret, configPath, embedded, hopeless, wrongKeys, log } = options
  const { listen, admin: adminSettings, redis, store, tracing } = first.config.gateway
  const health = new Health()
  const metrics = new Metrics(version())
  metrics.policyLoaded(first.compiled.policy.revision)
  metrics.watchKeys(() => wrongKeys.counts())
  let inForce = { loaded: first, loadedAt: new Date(), change: 0 }
  let changing: Promise<unknown> = Promise.resolve()

  /** Changes of what workers run wait for each other. */
  function oneAtATime(change: () => Promise<void>): Promise<void> {
    const done = changing.then(change)
    changing = done.catch(() => undefined)
    return done
  }

  async function replace(loaded: Configuration): Promise<void> {
    await startEmbedded(loaded, embedded)
    await changeAll(pool, loaded.contents)
    inForce = { loaded, loadedAt: new Date(), change: inForce.change + 1 }
    await loaded.compiled.close()
  }

  async function admit(member: Member, change: number, join: () => void): Promise<void> {
    // Restarting it instead would never end while changes follow each other faster than a worker starts.
    if (change !== inForce.change) await changeAll({ members: [member] }, inForce.loaded.contents)
    join()
  }

  const pool = new WorkerPool({
    size: workers,
    configPath,
    calls: {
      embedded,
      reportForwarding: seldom(warnOf(log)),
      orders: () => ({
        workers,
        secret: secret.toString('base64'),
        started: { listen, redis, store, tracing },
        contents: inForce.loaded.contents,
        change: inForce.change,
        supervisor: process.pid,
      }),
    },
    timeoutMs: listen.workerTimeout,
    admit: (member, change, join) => oneAtATime(() => admit(member, change, join)),
    ended: id => questions.ended(id),
    hopeless,
    log,
  })
  metrics.watchWorkers(() => pool.members)
  const questions = new WorkerQuestions(pool, () => runtime.inForce(inForce.loaded))
  const reloader = new Reloader({
    first,
    load,
    replace: loaded => oneAtATime(() => replace(loaded)),
    onResult: reloaded => metrics.reloaded(reloaded),
    log,
  })

  // Plugins run in the workers; here they were only needed to validate the configuration.
  await first.compiled.close()
  const runtime = await Runtime.open(redis, log)
  let url = ''
  const admin = await startAdmin({
    ...adminSettings,
    wrongKeys,
    health: {
      get readiness() {
        const { trouble } = pool
        if (!health.readiness.ready || trouble === undefined) return health.readiness
        return { ready: false, reason: trouble }
      },
    },
    troubles: () => options.embeddedTroubles?.() ?? [],
    metrics: {
      contentType: metrics.contentType,
      text: async () =>
        (await questions.metrics(await metrics.snapshot())) + ((await options.embeddedMetrics?.()) ?? ''),
    },
    log,
    state: async () => ({
      ...describeState(
        { ...inForce, backends: await questions.backends() },
        reloader,
        runtime,
        latestOf((await questions.live()).parts.map(part => part.untrusted_forwarding)),
      ),
      workers: workersOf(pool),
    }),
    reload: () => reloader.reload('admin'),
    explain: asked => questions.explain(asked),
    inspected: questions,
    live: liveData({
      ask: () => questions.live(),
      askHistory: of => questions.history(of),
      workers: () =>
        workersOf(pool).map(({ startedAt, ...worker }) => ({
          ...worker,
          started_at: startedAt.toISOString(),
        })),
      inForce: () => ({ ...inForce, current: runtime.inForce(inForce.loaded) }),
      reloader,
      redis,
      overrides: runtime.overrides,
      log,
    }),
    ...overrideRoutes(
      runtime,
      () => inForce.loaded,
      log,
      () => questions.readOverrides(),
    ),
    documents: () => serviceDocuments(inForce.loaded.config.gateway, url),
  }).catch(listenFault('admin', adminSettings))
  await startEmbedded(first, embedded)
  url = await pool.start()
  health.ready()

  return {
    url,
    adminUrl: urlOf(admin),
    reloader,
    async drain() {
      health.draining()
      await pool.drain(inForce.loaded.config.gateway.drain)
      await admin.close()
      runtime.store.close()
    },
  }
}

function workersOf({ members }: WorkerPool) {
  return members.map(({ pid, startedAt, answers }) => ({ pid, startedAt, answers: answers() }))
}
