/** Joins the rooms into one running gateway: start, and drain. The only file besides `plugins` that knows all rooms. */
import type { Config } from '../config/load.js'
import { startAdmin } from './admin/server.js'
import { Decider } from './decide/decide.js'
import { needsBody, PEEK_BYTES } from './decide/email-or-flow.js'
import { openStore } from './decide/store/open.js'
import type { CounterStore } from './decide/store/store.js'
import { CATALOGUE } from './errors.js'
import { corsFields, exposedFields, type Families, rateLimitFields } from './forward/fields.js'
import { createHttpTransport } from './forward/http.js'
import { rejectionOf, sendRejection } from './forward/reject.js'
import { createUpgradeTransport } from './forward/upgrade.js'
import { peekBody, tapBody } from './listen/body.js'
import { TrustedProxies } from './listen/client.js'
import { type FactsSettings, readFacts } from './listen/facts.js'
import { createListener } from './listen/server.js'
import { decisionLog } from './observe/decision-log.js'
import { Health } from './observe/health.js'
import { Metrics } from './observe/metrics.js'
import { Redactor } from './observe/redact.js'
import { createPipeline, type Rooms, type Snapshot, type Upstream } from './pipeline.js'
import type { Observer } from './plugin.js'
import { limitPlugins } from './plugins.js'
import type { Compiled } from './snapshot.js'
import type { Log } from './types.js'

export interface GatewayOptions {
  readonly config: Config
  readonly compiled: Compiled
  /** Addresses of the embedded services, by name. */
  readonly embedded: ReadonlyMap<string, string>
  /** Keys the hashes that stand for personal data. */
  readonly secret: Buffer
  readonly log: Log
}

export interface Gateway {
  readonly url: string
  readonly adminUrl: string
  /** Fails readyz, stops listening, lets requests finish up to the configured deadline, then closes everything. */
  drain(): Promise<void>
}

/** How long a request's body is waited for when an enforced rule's key stands in it. */
const PEEK_MS = 5000

/** Starts listening; the counter store may be away, the addresses may not be taken. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, compiled, log } = options
  const settings = config.gateway
  const metrics = new Metrics()
  const health = new Health()
  const store = await openStore({ redis: settings.redis, ...settings.store }, log, {
    failed: op => metrics.storeError(op),
    awayChanged: away => metrics.fallbackActive(away),
  })
  const upstreams = openUpstreams(options)
  const snapshot = compiled.snapshot(upstreams)
  const redactor = new Redactor(options.secret, compiled.words)
  const observers: Observer[] = [metrics.observer(), decisionLog(settings.log.decisions, redactor, log)]
  metrics.policyLoaded(compiled.revision)

  const pipeline = createPipeline(roomsOf(options, store, snapshot, observers, metrics))
  const listener = createListener({
    ...pipeline,
    refused: code => metrics.refusedUnread(CATALOGUE[code].status),
    failed: error => log.error({ err: error }, 'a connection was cut'),
  })
  const admin = await startAdmin({
    ...settings.admin,
    health,
    metrics,
    log,
    state: () => ({
      revision: compiled.revision,
      policies: config.policies.map(({ file, kind }) => ({ file, kind })),
    }),
  })
  const address = await listener.start(settings.listen.host, settings.listen.port)
  health.ready()

  return {
    url: urlOf(address),
    adminUrl: urlOf(admin),
    async drain() {
      health.draining()
      await listener.drain(settings.drain)
      await Promise.all([...upstreams.values()].map(upstream => upstream.close()))
      await Promise.all(observers.map(observer => observer.close?.()))
      await store.close()
      await admin.close()
    },
  }
}

function roomsOf(
  { config, secret, log }: GatewayOptions,
  store: CounterStore,
  snapshot: Snapshot,
  observers: readonly Observer[],
  metrics: Metrics,
): Rooms {
  const settings = config.gateway
  const limiters = new Map(
    limitPlugins.map(plugin => [plugin.name, plugin.create({ log, projects: config.projects })]),
  )
  const decider = new Decider(limiters, store, secret, (rule, change) => metrics.inflight(rule, change))
  const facts: FactsSettings = {
    trusted: new TrustedProxies(settings.trustedProxies),
    fingerprintHeaders: settings.fingerprintHeaders,
  }
  const families: Families = settings.rateLimitFields
  return {
    log,
    snapshot: () => snapshot,
    readFacts: req => readFacts(req, facts),
    needsBody,
    peekBody: req => peekBody(req, PEEK_BYTES, PEEK_MS),
    tapBody: (req, onPrefix) => tapBody(req, PEEK_BYTES, onPrefix),
    decide: request => decider.decide(request),
    answerFields: (facts, verdict) => {
      const fields = verdict ? rateLimitFields(verdict, families) : []
      if (fields.length > 0 && facts.header('origin') !== undefined) fields.push(...exposedFields())
      return fields
    },
    rejectionFields: facts => corsFields(facts.header('origin'), settings.cors),
    rejectionOf,
    sendRejection,
    finished: event => {
      for (const observer of observers) observer.finished(event)
    },
  }
}

interface OpenUpstream extends Upstream {
  close(): Promise<void>
}

function openUpstreams({ config, embedded }: GatewayOptions): Map<string, OpenUpstream> {
  const upstreams = new Map<string, OpenUpstream>()
  for (const [name, written] of Object.entries(config.gateway.upstreams)) {
    const settings = {
      name,
      url: 'embedded' in written ? (embedded.get(written.embedded) as string) : written.url,
      timeouts: 'embedded' in written ? EMBEDDED_TIMEOUTS : timeoutsOf(written.timeouts),
      fingerprintHeaders: config.gateway.fingerprintHeaders,
    }
    const http = createHttpTransport(settings)
    const upgrades = createUpgradeTransport(settings)
    upstreams.set(name, {
      name,
      forward: exchange => http.forward(exchange),
      upgrade: exchange => upgrades.upgrade(exchange),
      async close() {
        upgrades.close()
        await http.close()
      },
    })
  }
  return upstreams
}

const EMBEDDED_TIMEOUTS = { connectMs: 2000, headMs: 30_000, idleMs: 60_000 }

function timeoutsOf({ connect, head, idle }: { connect: number; head: number; idle: number }) {
  return { connectMs: connect, headMs: head, idleMs: idle }
}

function urlOf({ host, port }: { host: string; port: number }): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
