/** The built command in a process of its own, with a configuration written for it. */
import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { clockOfTests } from './clocks.js'
import { type Launched, launch } from './launch.js'
import { inProject } from './root.js'
import { type Scope, temporaryFolder } from './scope.js'

export interface GatewayProcess extends Omit<Launched, 'match'> {
  readonly url: string
  readonly adminUrl: string
  /** Resident memory in bytes. */
  resident(): Promise<number>
}

/** gateway.yaml of a process that counts on Redis, refuses instead of counting locally, and has one upstream. */
export const strictGatewayYaml = (redis: string, upstream: string): string => `version: 1
listen: { host: 127.0.0.1, port: 0, maxEventLoopDelay: 1h }
admin: { host: 127.0.0.1, port: 0 }
redis: ${redis}
store: { deadline: 5s, onError: closed }
retryJitter: 0%
upstreams: { app: { url: "${upstream}" } }
routes: [{ path: /**, upstream: app }]
`

/** The text of a configuration file, or its content. */
export type Yaml = string | Readonly<Record<string, unknown>>

const ACME = projectsYaml(['acme'])

/** projects.yaml with these ids, each on the host `ID.localhost`. */
export function projectsYaml(ids: readonly string[]): Yaml {
  const rest = { plan: 'growth', environment: 'production' }
  return { projects: ids.map(id => ({ id, ...rest, hosts: [`${id}.localhost`] })) }
}

/** The keys of a gateway.yaml with one upstream for all paths. */
export const oneUpstream = (url: string, settings: object = {}) => ({
  upstreams: { app: { url, ...settings } },
  routes: [{ path: '/**', upstream: 'app' }],
})

/**
 * The content of gateway.yaml: free ports, unless it says otherwise, and no shedding, because whoever measures a gateway
 * loads the machine as well.
 */
export function gatewayYaml({ listen, admin, ...settings }: Readonly<Record<string, unknown>>): string {
  const at = { host: '127.0.0.1', port: 0 }
  return textOf({
    listen: { ...at, maxEventLoopDelay: '1h', ...(listen as object | undefined) },
    admin: { ...at, ...(admin as object | undefined) },
    ...settings,
  })
}

/** Whatever is JSON is YAML, too. */
const textOf = (yaml: Yaml): string =>
  typeof yaml === 'string' ? yaml : `${JSON.stringify({ version: 1, ...yaml }, null, 1)}\n`

/** Writes gateway.yaml, projects.yaml and the policies into a folder that is removed at the end. */
export function writeConfig(
  t: Scope,
  gateway: Yaml,
  policies: Readonly<Record<string, Yaml>>,
  projects = ACME,
): string {
  const folder = temporaryFolder(t, 'process')
  mkdirSync(join(folder, 'policies'))
  const write = (name: string, yaml: Yaml) => writeFileSync(join(folder, name), textOf(yaml))
  write('gateway.yaml', typeof gateway === 'string' ? gateway : gatewayYaml(gateway))
  write('projects.yaml', projects)
  for (const [name, yaml] of Object.entries(policies)) write(join('policies', name), yaml)
  return folder
}

/** Whether a line of the log reports an error. */
export const isError = (line: string): boolean => /^\{"level":"(error|fatal)"/.test(line)

/** Starts `sluice serve` on a folder whose listeners use free ports; it is stopped at the end. */
export function gatewayProcess(
  t: Scope,
  folder: string,
  env: Readonly<Record<string, string>> = {},
  cwd?: string,
): Promise<GatewayProcess> {
  return serveProcess(t, ['--config', folder], { DATA_DIR: folder, ...env }, { cwd })
}

export interface Served {
  readonly cwd?: string | undefined
  /** Options of Node. */
  readonly node?: readonly string[]
  /** Gets each line that it logs. */
  readonly onLine?: (line: string) => void
}

/** Like `gatewayProcess`, with the options of `serve` given literally. */
export async function serveProcess(
  t: Scope,
  options: readonly string[],
  env: Readonly<Record<string, string>> = {},
  { node = [], ...served }: Served = {},
): Promise<GatewayProcess> {
  const gateway = await launch(
    process.execPath,
    [...node, inProject('dist', 'gateway', 'cli.js'), 'serve', ...options],
    {
      ready: /Sluice is ready on (\S+), admin on ([^\s"]+)/,
      env: { PATH: process.env.PATH ?? '', ...clockOfTests(), ...env },
      ...served,
    },
  )
  t.teardown(() => gateway.signal('SIGKILL'))
  t.teardown(() => {
    const warning = /\(node:\d+\) .*Warning.*/.exec(gateway.out())
    if (warning !== null) throw new Error(`The gateway warned: ${warning[0]}`)
  })
  const [, url = '', adminUrl = ''] = gateway.match
  return {
    ...gateway,
    url,
    adminUrl,
    async resident() {
      const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(gateway.pid)])
      return Number(stdout) * 1024
    },
  }
}
