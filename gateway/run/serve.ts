/** `sluice serve`: the gateway as a process. The only file that starts the embedded services. */
import { randomBytes } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { FileContents } from '../../config/files.js'
import type { Config } from '../../config/load.js'
import { listProblems } from '../../config/problem.js'
import { MOST_WORKERS } from '../../config/schema/listen.js'
import { targetRules } from '../../webhooks/target.js'
import type { WrongKeys } from '../admin/wrong-keys.js'
import { type Configuration, load, loadOrFail } from '../configured/load.js'
import { Failure } from '../errors.js'
import type { ClosableLog } from '../observe/log.js'
import type { Log } from '../types.js'
import { drainOnSignals } from './drain.js'
import { cannotStart, EMBEDDED, environmentProblems } from './environment.js'
import { type RunningGateway, startGateway } from './gateway.js'
import { holdHangups, onHangup } from './hangup.js'
import { logLevel, openLog, outliveRejections, variable } from './process.js'
import { hashSecret } from './secret.js'
import type { EmbeddedService } from './upstreams.js'
import { watchSources } from './watch.js'
import { openWrongKeys } from './wrong-keys.js'

export interface ServeOptions {
  /** Contents of the configuration's files, if not read from disk. */
  readonly contents?: FileContents
  /** A description of the configuration for the message that the gateway is ready. */
  readonly summary?: string
}

/**
 * Runs until SIGTERM or SIGINT; SIGHUP, a change of the files and the admin port reload. Resolves once it takes
 * requests, to its address. Throws a Failure.
 */
export async function serve(
  configPath: string,
  { contents, summary }: ServeOptions = {},
): Promise<Pick<RunningGateway, 'url'>> {
  holdHangups()
  const log = openLog(logLevel(process.env))
  const first = await loadOrFail(configPath, process.env, log, { contents })
  const problems = await environmentProblems(first.config, process.env)
  if (problems.length > 0) throw new Failure(listProblems(problems))
  warnOfLonelySecret(first.config, log)
  if (first.plugins.names.length > 0) outliveRejections(log)
  const { wrongKeys, close: forgetWrongKeys } = openWrongKeys(first.config.gateway.redis, log)
  const services = new Services(log, wrongKeys)
  const gateway = await start(configPath, { first, contents, services, wrongKeys, log })
  const { reloader } = gateway
  const watch = watchSources({
    sources: () => reloader.sources,
    idle: () => reloader.idle(),
    changed: () => reloader.reload('watch'),
    log,
  })
  const drain = drainOnSignals({
    log,
    unwatch: () => watch.close(),
    drainGateway: () => gateway.drain(),
    async closeServices() {
      await services.close()
      forgetWrongKeys()
    },
  })
  log.info(
    { listen: gateway.url, admin: gateway.adminUrl, revision: first.compiled.policy.revision },
    `Sluice is ready on ${gateway.url}, admin on ${gateway.adminUrl} with its page at /ui/${summary === undefined ? '' : ` (${summary})`}`,
  )
  onHangup(() => (hasLostTerminal() ? drain('SIGHUP') : reloader.reload('SIGHUP')))
  return gateway
}

interface Started {
  readonly first: Configuration
  readonly contents: FileContents | undefined
  readonly services: Services
  readonly wrongKeys: WrongKeys
  readonly log: ClosableLog
}

/** Runs the gateway in this process or, with several workers, in child processes. */
async function start(
  configPath: string,
  { first, contents, services, wrongKeys, log }: Started,
): Promise<RunningGateway> {
  // Created here once, for all workers.
  const secret = hashSecret(process.env, hasServices(first.config))
  const options = {
    first,
    secret,
    load: () => load(configPath, process.env, log, { running: first.plugins, contents }),
    embedded: (name: string) => services.running(name as keyof typeof EMBEDDED),
    embeddedMetrics: () => services.metrics(),
    embeddedTroubles: () => services.troubles(),
    wrongKeys,
    webhookTargets: targetRules(process.env),
    log,
  }
  const workers = workersOf(first.config)
  if (workers === 1) return startGateway(options)
  const { poolHost } = await import('./workers/pool-host.js')
  async function hopeless(error: Error): Promise<void> {
    log.error({ err: error }, 'No worker is left and none can be started: the gateway exits')
    await services.close()
    await log.close()
    process.exit(1)
  }
  return startGateway(options, shared => poolHost({ ...shared, workers, configPath, hopeless }))
}

function hasServices({ gateway: { upstreams } }: Config): boolean {
  return Object.values(upstreams).some(upstream => 'embedded' in upstream)
}

/** Number of processes that take requests; `auto` means one per core. */
function workersOf({ gateway: { listen } }: Config): number {
  return listen.workers === 'auto' ? Math.min(availableParallelism(), MOST_WORKERS) : listen.workers
}

/** A closing terminal sends SIGHUP too: if that were taken for a reload, the process would keep running unattended. */
function hasLostTerminal(): boolean {
  if (process.stdout.isTTY !== true) return false
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return false
  } catch {
    return true
  }
}

function warnOfLonelySecret({ gateway }: Config, log: Log): void {
  if (gateway.redis === '' || variable('ENCRYPTION_KEY', process.env)) return
  log.warn({}, 'ENCRYPTION_KEY is not set: gateways that share this Redis do not share rules keyed by e-mail')
}

interface Service {
  readonly url: string
  /** Messages for the person who starts the gateway. */
  readonly notes: string[]
  /** Its own series in the Prometheus text format. */
  metrics(): Promise<string>
  /** A sentence while its database is not working properly. */
  trouble(): string | undefined
  close(): Promise<void>
}

/** The embedded services: each starts on first use and runs until the process ends. */
class Services {
  readonly #log: Log
  readonly #wrongKeys: WrongKeys
  /** New at each start: by it the services know this gateway. */
  readonly #secret = randomBytes(32).toString('base64url')
  readonly #started = new Map<string, Promise<Service>>()
  readonly #running: Service[] = []

  constructor(log: Log, wrongKeys: WrongKeys) {
    this.#log = log
    this.#wrongKeys = wrongKeys
  }

  async running(name: keyof typeof EMBEDDED): Promise<EmbeddedService> {
    const starting = this.#started.get(name) ?? this.#start(name)
    this.#started.set(name, starting)
    try {
      return { url: (await starting).url, secret: this.#secret }
    } catch (error) {
      this.#started.delete(name)
      throw new Failure(cannotStart(name, (error as Error).message), { cause: error })
    }
  }

  /** A sentence for each service whose database is not working properly. */
  troubles(): string[] {
    return this.#running.flatMap(service => service.trouble() ?? [])
  }

  /** The series of all running services; a scrape does not wait for one that is starting. */
  async metrics(): Promise<string> {
    return (await Promise.all(this.#running.map(service => service.metrics()))).join('')
  }

  async close(): Promise<void> {
    for (const service of this.#started.values()) await (await service).close()
  }

  async #start(name: keyof typeof EMBEDDED): Promise<Service> {
    const { start } = await EMBEDDED[name]()
    const service: Service = await start({
      env: process.env,
      log: this.#log,
      gatewaySecret: this.#secret,
      wrongKey: (area, source, key) => this.#wrongKeys.sent(area, source, key),
    })
    this.#running.push(service)
    // Written to stderr so that they do not reach the log, and at once in case a later step fails.
    for (const note of service.notes) process.stderr.write(`${note}\n`)
    return service
  }
}
