/** A process that takes requests: it opens the gateway's core and answers the supervisor's calls. */
import cluster from 'node:cluster'
import type { FileContents } from '../../../config/files.js'
import { listProblems } from '../../../config/problem.js'
import type { Gateway } from '../../../config/schema/gateway.js'
import { type Configuration, type InvalidConfiguration, load, loadOrFail } from '../../configured/load.js'
import type { Slots } from '../../decide/held-slots.js'
import type { ReadKeys } from '../../identify/api-keys/key-store.js'
import { keyUses, learnKeys, shareKeys, wantsKeys } from '../../identify/api-keys/shared-keys.js'
import { trustChecks } from '../../identify/checked.js'
import { learnKeySet, type ReadKeySet, shareKeySets } from '../../identify/jwt/shared-key-sets.js'
import type { CertificatePair } from '../../listen/certificate.js'
import type { Notifications } from '../../notify/notifications.js'
import type { ClosableLog, LogLevel } from '../../observe/log.js'
import type { MetricsSnapshot } from '../../observe/series.js'
import type { UntrustedForwarding } from '../../observe/untrusted-forwarding.js'
import type { StoredOverride } from '../../overrides/override.js'
import type { Texts } from '../../overrides/stored-form.js'
import { openUsageStore } from '../../usage/store.js'
import { type Core, openCore, type Prepared } from '../core.js'
import type { KeyUses } from '../key-list.js'
import { openLog, outliveRejections } from '../process.js'
import type { BackendState, EmbeddedService } from '../upstreams.js'
import { countInTime } from './ask-count.js'
import { Channel, type SentError, sendableError } from './channel.js'
import { type KeyCalls, tellKeys } from './keys.js'
import { endWith } from './orphan-watch.js'
import { followSupervisor } from './overrides.js'

/** What a worker needs to start, whatever the files say by now. */
export interface Orders {
  readonly workers: number
  /** Key of the hashes that replace personal data, in base64: workers that count together must agree. */
  readonly secret: string
  readonly logLevel: LogLevel
  /** Settings that only a restart of the whole gateway changes. */
  readonly started: Pick<Gateway, 'listen' | 'redis' | 'store' | 'tracing'>
  /** The configuration in force: the files may have changed since, or be invalid. */
  readonly contents: FileContents
  /** The certificate in force; absent without TLS, and while none was issued. */
  readonly certificate?: CertificatePair | undefined
  /** Number of the change that put this configuration in force. */
  readonly change: number
  readonly overrides: Texts
  /** Files of API keys that may say something else than what is in force, with what is. */
  readonly keys: readonly ReadKeys[]
  /** Key sets that were read: their issuers may be away by now, and their files gone. */
  readonly keySets: readonly ReadKeySet[]
  /** Process id of the supervisor. */
  readonly supervisor: number
}

/** Calls that the supervisor answers. */
export interface SupervisorCalls extends KeyCalls {
  orders(): Orders
  /** An embedded service; starts it when asked for the first time. */
  embedded(name: string): Promise<EmbeddedService>
  /** A request named its client in a field that is not believed: one line is enough for all workers. */
  reportForwarding(seen: UntrustedForwarding): void
  /** The worker has read a key set: the others learn it. */
  keySetRead(read: ReadKeySet): void
  countWrongCredential(client: string, credential: string): Promise<number | undefined>
  claimNotification: Notifications['claim']
  shortenClaim: Notifications['shorten']
  sendNotification: Notifications['send']
  /** @throws {Unreachable} */
  recordOverride(override: StoredOverride): Promise<void>
  withdrawOverride(id: string): Promise<void>
  /**
   * Resolves when a worker that got its orders at this change may take requests: it has been given the configuration and
   * the overrides in force by now.
   */
  join(change: number): Promise<void>
  /** The worker takes requests at this address. */
  ready(url: string): void
  /** The start failed; the process ends. */
  failed(error: SentError): void
}

/** Calls that a worker answers once it asks to join. */
export interface WorkerCalls
  extends KeyCalls,
    Pick<Core, 'live' | 'history' | 'explain' | 'forget' | 'forgetRefusals' | 'flushUsage'> {
  ping(): void
  metrics(): Promise<MetricsSnapshot>
  backends(): BackendState[]
  keyUses(): KeyUses
  slots(): Slots
  counters: Core['inspected']['counters']
  reset: Core['inspected']['reset']
  addCredit: Core['credits']['add']
  listCredit: Core['credits']['list']
  /** Puts the overrides in force. */
  overrides(texts: Texts): void
  /** Redis has not answered another process. */
  suspectRedis(): void
  learnKeySet(read: ReadKeySet): void
  /** Serves a certificate that was issued. */
  replaceCertificate(certificate: CertificatePair): void
  /** Opens the configuration in `contents`, for `commit` or `discard`. */
  prepare(contents: FileContents): Promise<void>
  /** Null without TLS. */
  commit(certificate: CertificatePair | null): Promise<void>
  discard(): Promise<void>
  /** Ends the process. */
  drain(): Promise<void>
}

/** Runs until the supervisor ends it, or has gone. */
export async function work(configPath: string): Promise<void> {
  if (cluster.worker === undefined) throw new Error('A worker is started by "sluice serve", not by hand.')
  const supervisor = new Channel<SupervisorCalls>(cluster.worker, {
    ping: () => undefined,
    drain: () => process.exit(0),
  })
  try {
    await start(configPath, supervisor)
  } catch (error) {
    await supervisor.ask('failed', sendableError(error as Error))
    process.exit(1)
  }
}

async function start(configPath: string, supervisor: Channel<SupervisorCalls>): Promise<void> {
  const orders = await supervisor.ask('orders')
  const { workers, secret, started, contents, change } = orders
  endWith(orders.supervisor)
  const log = openLog(orders.logLevel, process.pid)
  trustChecks()
  for (const read of orders.keys) learnKeys(read)
  shareKeys(read => tellKeys(supervisor, read))
  for (const read of orders.keySets) learnKeySet(read)
  shareKeySets(read => void supervisor.ask('keySetRead', read).catch(() => undefined))
  const loaded = await loadOrFail(configPath, process.env, log, { contents })
  if (loaded.plugins.names.length > 0) outliveRejections(log)
  const { runtime, receive } = followSupervisor(supervisor, orders.overrides, log)
  let suspectRedis = (): void => {}
  const core = await openCore({
    first: asStarted(loaded, started),
    certificate: orders.certificate,
    workers,
    embedded: name => supervisor.ask('embedded', name),
    countWrongCredential: countInTime((client, credential) =>
      supervisor.ask('countWrongCredential', client, credential),
    ),
    notifications: notificationsOf(supervisor),
    usageStore: openUsageStore(started.redis, log),
    secret: Buffer.from(secret, 'base64'),
    async openRuntime(unanswered) {
      suspectRedis = unanswered
      return runtime
    },
    reportForwarding: seen => void supervisor.ask('reportForwarding', seen).catch(() => undefined),
    log,
  })
  const read = (contents: FileContents) =>
    load(configPath, process.env, log, { running: loaded.plugins, contents })
  supervisor.answers = {
    ...callsOf(core, log, read),
    overrides: receive,
    suspectRedis,
    learnKeySet,
    wantsKeys,
    learnKeys: read => void learnKeys(read),
  } satisfies WorkerCalls
  await supervisor.ask('join', change)
  await supervisor.ask('ready', await core.listen())
}

/** The supervisor claims and sends for all workers: without an answer, another may have claimed. */
function notificationsOf(supervisor: Channel<SupervisorCalls>): Notifications {
  return {
    claim: (name, ms) => supervisor.ask('claimNotification', name, ms).catch(() => false),
    shorten: (name, ms) => void supervisor.ask('shortenClaim', name, ms).catch(() => undefined),
    send: notification => supervisor.ask('sendNotification', notification).catch(() => undefined),
  }
}

/** A replacement must run with the same settings as the other workers, even if the files ask for a restart by now. */
function asStarted(
  loaded: Configuration,
  { listen, redis, tracing, store: { deadline, instances } }: Orders['started'],
): Configuration {
  const { gateway } = loaded.config
  const store = { ...gateway.store, deadline, instances }
  return { ...loaded, config: { ...loaded.config, gateway: { ...gateway, listen, redis, tracing, store } } }
}

function callsOf(
  core: Core,
  log: ClosableLog,
  read: (contents: FileContents) => Promise<Configuration | InvalidConfiguration>,
): Omit<WorkerCalls, 'overrides' | 'suspectRedis' | 'learnKeySet' | keyof KeyCalls> {
  const { metrics, inspected, credits } = core
  let next: Promise<Prepared> | undefined

  async function open(contents: FileContents): Promise<Prepared> {
    const loaded = await read(contents)
    if ('problems' in loaded) throw new Error(listProblems(loaded.problems))
    try {
      return await core.prepare(loaded)
    } catch (error) {
      await loaded.compiled.close()
      throw error
    }
  }

  return {
    ping: () => undefined,
    metrics: () => metrics.snapshot(),
    backends: () => core.inForce.backends,
    slots: () => inspected.slots(),
    live: core.live,
    keyUses,
    history: core.history,
    counters: inspected.counters,
    reset: inspected.reset,
    addCredit: credits.add,
    listCredit: credits.list,
    explain: core.explain,
    forget: core.forget,
    flushUsage: core.flushUsage,
    forgetRefusals: core.forgetRefusals,
    replaceCertificate: core.replaceCertificate,
    async prepare(contents) {
      next = open(contents)
      await next
    },
    commit: async certificate => (await next)?.commit(certificate ?? undefined),
    discard: async () => (await next)?.discard(),
    async drain() {
      await core.drain()
      await log.close()
      process.exit(0)
    },
  }
}
