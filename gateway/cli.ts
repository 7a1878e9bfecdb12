#!/usr/bin/env node
/** The `sluice` command. */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { Failure, loadOrFail } from './load.js'
import { serve } from './serve.js'
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

function check(configPath: string): void {
  const { config, compiled } = loadOrFail(configPath, process.env, quiet)
  const { gateway, projects, policies } = config
  print(
    `${config.gatewayFile}: good. ${Object.keys(gateway.upstreams).length} upstreams, ${projects.length} projects, ` +
      `${policies.length} policy files, revision ${compiled.revision}.\n`,
  )
}

async function health(configPath: string): Promise<void> {
  const { config } = loadOrFail(configPath, process.env, quiet)
  const { host, port } = config.gateway.admin
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/readyz`
  const answer = await fetch(url, { signal: AbortSignal.timeout(2000) }).catch(() => undefined)
  if (answer === undefined) throw new Failure(`Nothing answers on ${url}.`)
  const text = await answer.text()
  if (!answer.ok) throw new Failure(`Not ready: ${text}`)
  print('ready\n')
}

const quiet: Log = { debug() {}, info() {}, warn() {}, error() {} }

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
