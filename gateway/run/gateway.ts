/** Assembles a running gateway around what takes its requests: reload, admin port, drain. */

import { urlOf } from '../../config/words/address.js'
import type { TargetRules } from '../../webhooks/target.js'
import type { CertificateKeeper } from '../acme/keeper.js'
import { Health, startAdmin } from '../admin/server.js'
import type { WrongKeys } from '../admin/wrong-keys.js'
import type { Configuration, InvalidConfiguration } from '../configured/load.js'
import { NotFound } from '../errors.js'
import { serviceDocuments } from '../explain/inspect.js'
import { listRoutes } from '../explain/route-list.js'
import { NotificationSender } from '../notify/sender.js'
import { watchCertificate, watchKeys, watchNotifications } from '../observe/watched.js'
import { reportModes } from '../overrides/mode.js'
import { reportQuotas } from '../overrides/quota.js'
import { overrideRoutes } from '../overrides/routes.js'
import { type UsageAsked, usageRows } from '../usage/export.js'
import type { UsageRow } from '../usage/row.js'
import { openUsageStore, type UsageStore } from '../usage/store.js'
import { certificateKeeper } from './acme.js'
import { type Host, type HostOptions, processHost } from './host.js'
import { KeyLister } from './key-list.js'
import { listenFault } from './listen-fault.js'
import { joinUpstreams, standingOf } from './live/join-upstreams.js'
import { liveData } from './live/live-data.js'
import { Reloader } from './reload.js'

export interface GatewayOptions
  extends Omit<HostOptions, 'countWrongCredential' | 'notifications' | 'usageStore' | 'ordered'> {
  /** Reads the configuration again. */
  load(): Promise<Configuration | InvalidConfiguration>
  /** The series of the embedded services, in the Prometheus text format. */
  embeddedMetrics?(): Promise<string>
  /** Problems of the embedded services, a sentence each. */
  embeddedTroubles?(): string[]
  /** Counts wrong keys sent to the admin port and the embedded services, and wrong credentials of requests. */
  readonly wrongKeys: WrongKeys
  /** Where notifications may be sent. */
  readonly webhookTargets: TargetRules
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
export async function startGateway(
  options: GatewayOptions,
  openHost: (options: HostOptions) => Promise<Host> = processHost,
): Promise<RunningGateway> {
  const { first, load, wrongKeys, log } = options
  const { admin: settings, redis } = first.config.gateway
  const countWrongCredential = (client: string, credential: string) =>
    wrongKeys.sent('routes', client, credential)
  const keeper = certificateKeeper(first, {
    install: certificate => host.install(certificate),
    log,
  })
  const notifications = new NotificationSender({ redis, targets: options.webhookTargets, log })
  const usageStore = openUsageStore(redis, log)
  const host = await openHost({
    ...options,
    countWrongCredential,
    notifications,
    usageStore,
    ordered: await keeper?.stored(),
  })
  const { metrics, overrides } = host
  const { runtime } = overrides
  const health = new Health(() => host.trouble)
  metrics.policyLoaded(first.compiled.policy.revision)
  watchCertificate(metrics.series, keeper)
  watchKeys(metrics.series, () => wrongKeys.counts())
  watchNotifications(metrics.series, notifications.counts)
  const reloader = new Reloader({
    first,
    load,
    replace: loaded => host.replace(loaded),
    onResult(reloaded) {
      metrics.reloaded(reloaded)
      keys.reloaded()
    },
    log,
  })
  // The admin port is up before the data port has an address.
  let url = ''
  const keys = new KeyLister({
    loaded: () => host.inForce.loaded,
    uses: () => host.keyUses(),
    redis,
    log,
  })
  const admin = await startAdmin({
    ...settings,
    wrongKeys,
    health,
    troubles: () => options.embeddedTroubles?.() ?? [],
    metrics: {
      contentType: metrics.contentType,
      text: async () => (await host.series()) + ((await options.embeddedMetrics?.()) ?? ''),
    },
    log,
    state: () => describeState(host, reloader, keeper),
    reload: () => reloader.reload('admin'),
    explain: asked => host.explain(asked),
    inspected: host.inspected,
    credits: host.credits,
    routes: () => listRoutes(host.inForce.loaded.config.gateway),
    keys: project => keys.list(project),
    usage: asked => readUsage(host, usageStore, asked),
    live: liveData({
      host,
      reloader,
      redis,
      overrides: runtime.overrides,
      runtime,
      certificate: keeper,
      log,
    }),
    ...overrideRoutes(
      overrides,
      () => host.inForce.loaded,
      log,
      () => host.overridesInForce(),
    ),
    documents: () => serviceDocuments(host.inForce.loaded.config.gateway, url),
  }).catch(listenFault('admin', settings))
  url = await host.listen()
  // Not before: the authority may look for its challenge at once.
  keeper?.start()
  health.ready()

  return {
    url,
    adminUrl: urlOf(admin),
    reloader,
    async drain() {
      health.draining()
      reloader.close()
      await keeper?.close()
      // The processes still know when keys were used.
      const listClosed = keys.close()
      await host.drain()
      await notifications.close()
      await admin.close()
      usageStore.close()
      await listClosed
      overrides.store.close()
    },
  }
}

/** @throws {NotFound} while nothing is counted */
async function* readUsage(
  host: Pick<Host, 'inForce' | 'flushUsage'>,
  store: UsageStore,
  asked: UsageAsked,
): AsyncGenerator<UsageRow> {
  const { usage } = host.inForce.loaded.config.gateway
  if (usage === undefined) {
    throw new NotFound('Usage is not counted: write "usage: {}" in gateway.yaml and reload.')
  }
  await host.flushUsage()
  yield* usageRows(store, asked, usage.keep)
}

/** Plain data, fit for JSON; dates are written as ISO 8601. */
async function describeState(
  host: Pick<Host, 'inForce' | 'backends' | 'untrustedForwarding' | 'overrides' | 'workers'>,
  { needsRestart, last }: Pick<Reloader, 'needsRestart' | 'last'>,
  keeper: Pick<CertificateKeeper, 'state'> | undefined,
): Promise<object> {
  const { loaded, loadedAt } = host.inForce
  const { compiled, config } = loaded
  const { workers } = host
  const { contents } = host.overrides.runtime
  const backends = await host.backends()
  return {
    revision: compiled.policy.revision,
    loadedAt,
    policies: [...config.policies, ...config.access].map(({ file, kind }) => ({ file, kind })),
    backends: backends.map(one => ({
      upstream: one.upstream,
      backend: one.backend,
      ejected: one.ejected,
      ...standingOf(one),
      requests: one.requests,
      webSockets: one.webSockets,
    })),
    /** With the cause, and since when, where none of its addresses can be reached. */
    upstreams: joinUpstreams([backends]).map(({ addresses: _addresses, ...upstream }) => upstream),
    /** The last request of the past minute with X-Forwarded-For from an address that is not in trustedProxies. */
    untrustedForwarding: await host.untrustedForwarding(),
    /** Modes of rules set on the admin port. */
    modes: reportModes(contents, loaded),
    /** Negotiated limits set on the admin port. */
    quotas: reportQuotas(contents.quotas.values(), loaded),
    /** Settings changed in the files that take effect only after a restart. */
    needsRestart,
    /** Null until the first reload. */
    lastReload: last ?? null,
    /** Where certificates are ordered: the one in force, and why there is none or no newer one. */
    ...(keeper && { certificate: keeper.state }),
    ...(workers && { workers }),
  }
}
