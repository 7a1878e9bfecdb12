/** Assembles one running gateway: start, reload and drain. */
import { startAdmin } from '../admin/server.js'
import type { WrongKeys } from '../admin/wrong-keys.js'
import type { Configuration, InvalidConfiguration } from '../configured/load.js'
import { serviceDocuments } from '../explain/inspect.js'
import { Health } from '../observe/health.js'
import { overrideRoutes } from '../overrides/routes.js'
import { type CoreOptions, openCore, urlOf } from './core.js'
import { listenFault } from './listen-fault.js'
import { liveData } from './live/live-data.js'
import { Reloader } from './reload.js'
import { describeState } from './state.js'

export interface GatewayOptions extends Omit<CoreOptions, 'workers'> {
  /** Reads the configuration again. */
  load(): Promise<Configuration | InvalidConfiguration>
  /** The series of the embedded services, in the Prometheus text format. */
  embeddedMetrics?(): Promise<string>
  /** Problems of the embedded services, a sentence each. */
  embeddedTroubles?(): string[]
  /** Counts wrong keys sent to the admin port and the embedded services. */
  readonly wrongKeys: WrongKeys
}

export interface RunningGateway {
  readonly url: string
  readonly adminUrl: string
  /** Runs reloads in order and remembers their results. */
  readonly reloader: Pick<Reloader, 'reload' | 'sources' | 'idle'>
  /** Fails `/readyz`, stops listening, lets requests finish up to the configured deadline, then closes everything. */
  drain(): Promise<void>
}

/** Starts listening. The counter store may be unavailable; rejects when an address is in use. */
export async function startGateway(options: GatewayOptions): Promise<RunningGateway> {
  const { first, load, wrongKeys, log } = options
  const core = await openCore({ ...options, workers: 1 })
  const { metrics } = core
  const health = new Health()
  metrics.policyLoaded(first.compiled.policy.revision)
  metrics.watchKeys(() => wrongKeys.counts())
  const reloader = new Reloader({
    first,
    load,
    async replace(loaded) {
      const { commit } = await core.prepare(loaded)
      commit()
    },
    onResult: reloaded => metrics.reloaded(reloaded),
    log,
  })
  // The admin port is up before the data port has an address.
  let url = ''
  const admin = await startAdmin({
    ...first.config.gateway.admin,
    wrongKeys,
    health,
    troubles: () => options.embeddedTroubles?.() ?? [],
    metrics: {
      contentType: metrics.contentType,
      text: async () => (await metrics.text()) + ((await options.embeddedMetrics?.()) ?? ''),
    },
    log,
    state: () => describeState(core.inForce, reloader, core.runtime, core.untrustedForwarding()),
    reload: () => reloader.reload('admin'),
    explain: core.explain,
    inspected: core.inspected,
    live: liveData({
      ask: () => ({ parts: [core.live()], missing: [] }),
      askHistory: of => ({ parts: [core.history(of)], missing: [] }),
      workers: () => [],
      inForce: () => core.inForce,
      reloader,
      redis: first.config.gateway.redis,
      overrides: core.runtime.overrides,
      log,
    }),
    ...overrideRoutes(core.runtime, () => core.inForce.loaded, log),
    documents: () => serviceDocuments(core.inForce.loaded.config.gateway, url),
  }).catch(listenFault('admin', first.config.gateway.admin))
  url = await core.listen()
  health.ready()

  return {
    url,
    adminUrl: urlOf(admin),
    reloader,
    async drain() {
      health.draining()
      await core.drain()
      await admin.close()
    },
  }
}
