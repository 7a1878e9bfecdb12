/**
 * A gateway of several workers on one port, each of which accepts connections. The supervisor accepts none: it watches
 * the workers, runs the embedded services, whose files belong to one process, and serves the admin port, because it is
 * always there and can ask all workers. Workers count together in Redis.
 */
import cluster from 'node:cluster'
import type { StoredCertificate } from '../../acme/folder.js'
import type { Configuration } from '../../configured/load.js'
import { Failure } from '../../errors.js'
import type { ReadKeys } from '../../identify/api-keys/key-store.js'
import { keysInForce, learnKeys, shareKeys, wantsKeys } from '../../identify/api-keys/shared-keys.js'
import type { ReadKeySet } from '../../identify/jwt/shared-key-sets.js'
import { Newest } from '../../identify/newest.js'
import { Metrics } from '../../observe/metrics.js'
import { latestOf, seldom, warnOf } from '../../observe/untrusted-forwarding.js'
import { watchWorkers } from '../../observe/watched.js'
import { certificateOf, nextCertificate } from '../certificate.js'
import type { InForce } from '../generation.js'
import type { Host, HostOptions } from '../host.js'
import { logLevel } from '../process.js'
import { startEmbedded } from '../upstreams.js'
import { version } from '../version.js'
import { tellKeys } from './keys.js'
import { PushedOverrides } from './overrides.js'
import { changeAll, WorkerQuestions } from './questions.js'
import { type Member, WorkerPool } from './worker-pool.js'

export interface PoolOptions extends HostOptions {
  /** More than one. */
  readonly workers: number
  /** The path given to the command, for the workers to read. */
  readonly configPath: string
  /** Called when no worker is left and none can be started. */
  hopeless(error: Error): void
}

/** Its `listen` resolves when every worker takes requests, and rejects with the error of the first that cannot start. */
export async function poolHost(options: PoolOptions): Promise<Host> {
  if (!cluster.isPrimary) {
    throw new Failure(
      'This process is itself a worker of a cluster, such as pm2 starts in its cluster mode: start one plain process, or set listen.workers to 1.',
    )
  }
  const { first, workers, secret, configPath, embedded, countWrongCredential, hopeless, log } = options
  const { notifications } = options
  const { listen, redis, store, tracing } = first.config.gateway
  const metrics = new Metrics(version())
  const level = logLevel(process.env)
  let active = {
    loaded: first,
    certificate: certificateOf(listen, first.contents, options.ordered),
    loadedAt: new Date(),
    change: 0,
  }
  const keySets = new Newest<ReadKeySet>()
  let changing: Promise<unknown> = Promise.resolve()

  /** Changes of what workers run wait for each other. */
  function oneAtATime(change: () => Promise<void>): Promise<void> {
    const done = changing.then(change)
    changing = done.catch(() => undefined)
    return done
  }

  async function replace(loaded: Configuration): Promise<void> {
    await startEmbedded(loaded, embedded)
    const { contents } = loaded
    const certificate = nextCertificate(listen, contents, active.certificate, log)
    await changeAll(pool, { contents, certificate })
    active = { loaded, certificate, loadedAt: new Date(), change: active.change + 1 }
    await loaded.compiled.close()
  }

  function keySetRead(read: ReadKeySet): void {
    if (!keySets.add(read)) return
    for (const { channel } of pool.members) channel.ask('learnKeySet', read).catch(() => undefined)
  }

  function tellAll(read: ReadKeys): void {
    for (const { channel } of pool.members) tellKeys(channel, read)
  }

  /** Workers that start meanwhile get it when they are admitted. */
  async function install(ordered: StoredCertificate): Promise<void> {
    const certificate = nextCertificate(listen, active.loaded.contents, active.certificate, log, ordered)
    active = { ...active, certificate }
    if (certificate === undefined) return
    const told = pool.members.map(({ channel }) => channel.ask('replaceCertificate', certificate))
    await Promise.allSettled(told)
  }

  async function admit(member: Member, change: number, join: () => void): Promise<void> {
    // Restarting it instead would never end while changes follow each other faster than a worker starts.
    if (change !== active.change) {
      const { loaded, certificate } = active
      await changeAll({ members: [member] }, { contents: loaded.contents, certificate })
    }
    const { certificate } = active
    if (certificate !== undefined) await member.channel.ask('replaceCertificate', certificate)
    join()
    // Those read since it got its orders.
    for (const read of keySets.all) member.channel.ask('learnKeySet', read).catch(() => undefined)
    for (const read of keysInForce()) tellKeys(member.channel, read)
    await overrides.pushTo(member)
  }

  const pool = new WorkerPool({
    size: workers,
    configPath,
    calls: {
      embedded,
      countWrongCredential,
      claimNotification: (name, ms) => notifications.claim(name, ms),
      shortenClaim: (name, ms) => notifications.shorten(name, ms),
      sendNotification: notification => notifications.send(notification),
      keySetRead,
      wantsKeys,
      learnKeys(read) {
        if (learnKeys(read)) tellAll(read)
      },
      reportForwarding: seldom(warnOf(log)),
      recordOverride: override => overrides.opened.runtime.journal.record(override),
      withdrawOverride: id => overrides.opened.runtime.journal.withdraw(id),
      orders: () => ({
        workers,
        secret: secret.toString('base64'),
        logLevel: level,
        started: { listen, redis, store, tracing },
        contents: active.loaded.contents,
        certificate: active.certificate,
        change: active.change,
        overrides: overrides.texts,
        keys: keysInForce(),
        keySets: keySets.all,
        supervisor: process.pid,
      }),
    },
    timeoutMs: listen.workerTimeout,
    admit: (member, change, join) => oneAtATime(() => admit(member, change, join)),
    ended: id => questions.ended(id),
    hopeless,
    log,
  })
  shareKeys(tellAll)
  watchWorkers(metrics.series, () => pool.members)
  const inForce = (): InForce => ({ ...active, current: overrides.opened.runtime.inForce(active.loaded) })
  const questions = new WorkerQuestions(pool, () => inForce().current)

  // Plugins run in the workers; here they were only needed to validate the configuration.
  await first.compiled.close()
  const overrides = await PushedOverrides.open(redis, questions, log)

  return {
    get inForce() {
      return inForce()
    },
    metrics,
    series: async () => questions.metrics(await metrics.snapshot()),
    overrides: overrides.opened,
    overridesInForce: () => overrides.inForce,
    inspected: questions,
    credits: questions.credits,
    explain: asked => questions.explain(asked),
    flushUsage: () => questions.flushUsage(),
    live: () => questions.live(),
    keyUses: () => questions.keyUses(),
    history: of => questions.history(of),
    backends: () => questions.backends(),
    untrustedForwarding: async () =>
      latestOf((await questions.live()).parts.map(part => part.untrusted_forwarding)),
    get workers() {
      return pool.members.map(({ pid, startedAt, answers }) => ({ pid, startedAt, answers: answers() }))
    },
    get trouble() {
      return pool.trouble
    },
    replace: loaded => oneAtATime(() => replace(loaded)),
    install: ordered => oneAtATime(() => install(ordered)),
    async listen() {
      await startEmbedded(first, embedded)
      return pool.start()
    },
    drain: () => pool.drain(active.loaded.config.gateway.drain),
  }
}
