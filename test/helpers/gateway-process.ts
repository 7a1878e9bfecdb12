/** The built command in a process of its own, with a configuration written for the test. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { clockOfTests } from './clocks.js'
import { inProject } from './root.js'
import { waitUntil } from './wait.js'

export interface GatewayProcess {
  readonly url: string
  readonly adminUrl: string
  readonly pid: number
  /** Everything it has logged so far. */
  out(): string
  /** Resident memory in bytes. */
  resident(): Promise<number>
  signal(name: NodeJS.Signals): void
  /** Resolves to its exit code and signal when it has ended. */
  exited(): Promise<readonly [number | null, NodeJS.Signals | null]>
  /** Kills it at once, as in a crash. */
  kill(): Promise<void>
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

/** Writes gateway.yaml, projects.yaml and the policies into a folder that is removed with the test. */
export function writeConfig(t: Test, gateway: string, policies: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-process-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'policies'))
  writeFileSync(join(folder, 'gateway.yaml'), gateway)
  writeFileSync(
    join(folder, 'projects.yaml'),
    'version: 1\nprojects: [{ id: acme, plan: growth, environment: production, hosts: [acme.localhost] }]\n',
  )
  for (const [name, text] of Object.entries(policies)) writeFileSync(join(folder, 'policies', name), text)
  return folder
}

/** Starts `sluice serve` on a folder whose listeners use free ports; it is stopped with the test. */
export function gatewayProcess(
  t: Test,
  folder: string,
  env: Readonly<Record<string, string>> = {},
  cwd?: string,
): Promise<GatewayProcess> {
  return serveProcess(t, ['--config', folder], { DATA_DIR: folder, ...env }, cwd)
}

/** Like `gatewayProcess`, with the options of `serve` given literally. */
export async function serveProcess(
  t: Test,
  options: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cwd?: string,
): Promise<GatewayProcess> {
  const args = [inProject('dist', 'gateway', 'cli.js'), 'serve', ...options]
  const child = spawn(process.execPath, args, {
    cwd,
    env: { PATH: process.env.PATH ?? '', ...clockOfTests(), ...env },
  })
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  const closed = once(child, 'close')
  t.teardown(() => child.kill('SIGKILL'))
  let out = ''
  t.teardown(() => {
    const warning = /\(node:\d+\) .*Warning.*/.exec(out)
    if (warning !== null) throw new Error(`The gateway warned: ${warning[0]}`)
  })
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', text => {
      out += text
    })
  }
  const ready = () => /Sluice is ready on (\S+), admin on ([^\s"]+)/.exec(out)
  await waitUntil('the ready line', () => ready() ?? child.exitCode !== null, 60_000)
  const [, url, adminUrl] = ready() ?? []
  if (url === undefined) {
    // Wait for the rest of its output.
    await closed
    throw new Error(`ended with ${child.exitCode}: ${out}`)
  }
  return {
    url: url as string,
    adminUrl: adminUrl as string,
    pid: child.pid as number,
    out: () => out,
    async resident() {
      const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(child.pid)])
      return Number(stdout) * 1024
    },
    signal: name => child.kill(name),
    async exited() {
      // Only then is its output complete.
      await closed
      return exited
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
