#!/usr/bin/env node
/** The `sluice` command. The only file that starts the embedded services. */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Config, loadConfig } from '../config/load.js'
import { formatProblem, type Problem } from '../config/problem.js'
import { startGateway } from './build.js'
import { createLog, isLogLevel, LOG_LEVELS } from './observe/log.js'
import { pluginSchemas } from './plugins.js'
import { hashSecret } from './secret.js'
import { type Compiled, compile } from './snapshot.js'
import type { Log } from './types.js'

const HELP = `Sluice, a rate-limiting gateway.

  sluice serve  [--config FILE]   run the gateway
  sluice check  [--config DIR]    check the configuration without running it: exit 0 when good, 1 when not
  sluice health [--config FILE]   ask the running gateway whether it is ready: exit 0 or 1
  sluice --version

--config names gateway.yaml or its folder; the default is ./config.

  sluice check --config ./config
`

/** Exit codes: 0 fine, 1 failed, 2 wrong usage. */
const FAILED = 1
const WRONG_USAGE = 2

const EMBEDDED = {
  directory: () => import('../services/directory/index.js'),
  identity: () => import('../services/identity/index.js'),
}

/** Something the person at the terminal can mend; printed without a stack. */
class Failure extends Error {}

async function main(): Promise<void> {
  const { command, configPath } = readArguments()
  switch (command) {
    case 'serve':
      return serve(configPath)
    case 'check':
      return check(configPath)
    case 'health':
      return health(configPath)
    case 'version':
      return print(version())
    default:
      return print(HELP)
  }
}

function readArguments(): { command: string; configPath: string } {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        config: { type: 'string', default: 'config' },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean' },
      },
    })
    const [command = 'help', ...rest] = positionals
    if (!['serve', 'check', 'health', 'help'].includes(command) || rest.length > 0) {
      throw new Error(`Unknown command "${positionals.join(' ')}".`)
    }
    const chosen = values.help ? 'help' : values.version ? 'version' : command
    return { command: chosen, configPath: values.config }
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${HELP}`)
    process.exit(WRONG_USAGE)
  }
}

async function serve(configPath: string): Promise<void> {
  refuseInsecureParser()
  const pretty = process.stdout.isTTY === true
  const level = process.env.LOG_LEVEL || 'info'
  if (!isLogLevel(level))
    throw new Failure(`LOG_LEVEL is "${level}"; it must be one of ${LOG_LEVELS.join(', ')}.`)
  const log = createLog({ level, pretty })
  const { config, compiled } = loadOrFail(configPath, log)
  if (config.gateway.redis !== '' && !process.env.ENCRYPTION_KEY) {
    log.warn(
      {},
      'ENCRYPTION_KEY is not set: gateways that share this Redis do not share rules keyed by e-mail',
    )
  }
  const services = await startServices(config, log)
  const embedded = new Map([...services].map(([name, service]) => [name, service.url]))
  const gateway = await startGateway({ config, compiled, embedded, secret: hashSecret(process.env), log })
  log.info(
    { listen: gateway.url, admin: gateway.adminUrl, revision: compiled.revision },
    `Sluice is ready on ${gateway.url}, admin on ${gateway.adminUrl}`,
  )

  let stopping = false
  const stop = async (signal: string) => {
    if (stopping) return
    stopping = true
    log.info({ signal }, 'Draining: requests under way may finish')
    await gateway.drain()
    for (const service of services.values()) await service.close()
    process.exit(0)
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

async function startServices(config: Config, log: Log) {
  const names = new Set(
    Object.values(config.gateway.upstreams).flatMap(upstream =>
      'embedded' in upstream ? upstream.embedded : [],
    ),
  )
  const services = new Map<string, { url: string; notes: string[]; close(): Promise<void> }>()
  for (const name of names as Set<keyof typeof EMBEDDED>) {
    const { start } = await EMBEDDED[name]()
    const service = await start({ env: process.env, log }).catch((error: Error) => {
      throw new Failure(`The ${name} service cannot start: ${error.message}`, { cause: error })
    })
    services.set(name, service)
    // To the person who starts it, not to whoever collects the log; and at once, in case a later step fails.
    for (const note of service.notes) process.stderr.write(`${note}\n`)
  }
  return services
}

function check(configPath: string): void {
  const { config, compiled } = loadOrFail(configPath, quiet)
  const { gateway, projects, policies } = config
  print(
    `${config.gatewayFile}: good. ${Object.keys(gateway.upstreams).length} upstreams, ${projects.length} projects, ` +
      `${policies.length} policy files, revision ${compiled.revision}.\n`,
  )
}

async function health(configPath: string): Promise<void> {
  const { config } = loadOrFail(configPath, quiet)
  const { host, port } = config.gateway.admin
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/readyz`
  const answer = await fetch(url, { signal: AbortSignal.timeout(2000) }).catch(() => undefined)
  if (answer === undefined) throw new Failure(`Nothing answers on ${url}.`)
  const text = await answer.text()
  if (!answer.ok) throw new Failure(`Not ready: ${text}`)
  print('ready\n')
}

const quiet: Log = { debug() {}, info() {}, warn() {}, error() {} }

function loadOrFail(configPath: string, log: Log): { config: Config; compiled: Compiled } {
  const loaded = loadConfig(configPath, { env: process.env, plugins: pluginSchemas })
  if ('problems' in loaded) throw new Failure(listProblems(loaded.problems))
  const compiled = compile(loaded.config, log)
  if ('problems' in compiled) throw new Failure(listProblems(compiled.problems))
  return { config: loaded.config, ...compiled }
}

function listProblems(problems: readonly Problem[]): string {
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`
  return [...problems.map(formatProblem), `${count} in the configuration.`].join('\n')
}

/** A lenient parser would read messages otherwise than the upstream does: that is request smuggling. */
function refuseInsecureParser(): void {
  const flags = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ')
  if (flags.includes('--insecure-http-parser')) {
    throw new Failure(
      'Sluice does not run with --insecure-http-parser: it would open the door to request smuggling.',
    )
  }
}

function version(): string {
  const file = new URL('../../package.json', import.meta.url)
  return `${(JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version}\n`
}

function print(text: string): void {
  process.stdout.write(text)
}

main().catch((error: NodeJS.ErrnoException) => {
  if (error instanceof Failure) process.stderr.write(`${error.message}\n`)
  else if (error.code === 'EADDRINUSE')
    process.stderr.write(`${error.message}. Choose another with PORT or ADMIN_PORT.\n`)
  else process.stderr.write(`${error.stack ?? error}\n`)
  process.exit(FAILED)
})
