/** Starts programs pinned to a core of this machine, and measures them. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { type Launched, launch } from '../../test/helpers/launch.js'
import type { Scope } from '../../test/helpers/scope.js'
import { Failure, inProject, onPath } from '../lib/run.mjs'

/** The proxy has this core to itself; everything else is on the other. */
export const PROXY_CORE = '0'
export const LOAD_CORE = '1'
export const BOTH_CORES = '0,1'

const TICKS_PER_SECOND = Number(spawnSync('getconf', ['CLK_TCK']).stdout?.toString() || 100)

export function needsTwoCores(): void {
  if (process.platform !== 'linux' || cpus().length < 2)
    throw new Failure('The benchmark needs Linux and two cores.')
}

export function needs(...commands: readonly string[]): void {
  const missing = commands.filter(command => !onPath(command))
  if (missing.length === 0) return
  throw new Failure(
    `The benchmark needs ${missing.join(', ')}: apt-get install wrk nginx redis-server; for all rows also nghttp2-client openssl libnginx-mod-http-lua lua-nginx-redis haproxy`,
  )
}

export type Program = readonly [command: string, ...args: string[]]

/** The built command, serving a folder. */
export const sluiceCommand = (folder: string): Program => [
  process.execPath,
  inProject('dist', 'gateway', 'cli.js'),
  ...['serve', '--config', folder],
]

/** A program of this folder's peers/. */
export const peerCommand = (name: string, ...args: string[]): Program => [
  process.execPath,
  inProject('dist', 'scripts', 'bench', 'peers', `${name}.js`),
  ...args,
]

/** Starts a program on a core until the end of `t`; `ready` as for `launch`. */
export async function startOn(
  t: Scope,
  core: string,
  program: Program,
  ready: RegExp | number,
  env: NodeJS.ProcessEnv = {},
): Promise<Launched> {
  const started = await launch('taskset', ['-c', core, ...program], {
    ready,
    env: { ...process.env, ...env },
  })
  t.teardown(() => started.stop())
  return started
}

/** Moves a running process to a core. */
export function moveTo(core: string, pid: number): void {
  execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', core, String(pid)], { stdio: 'ignore' })
}

/** CPU time of a process and all its descendants, in microseconds. */
export function cpuUs(pid: number): number {
  let ticks = 0
  for (const one of family(pid)) {
    const fields = stat(one)
    if (fields !== undefined) ticks += Number(fields[11]) + Number(fields[12])
  }
  return (ticks * 1e6) / TICKS_PER_SECOND
}

/** Resident memory of a process and all its descendants, in bytes. */
export function residentBytes(pid: number): number {
  let kilobytes = 0
  for (const one of family(pid)) {
    const status = readFileSync(`/proc/${one}/status`, 'utf8')
    kilobytes += Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0)
  }
  return kilobytes * 1024
}

function family(pid: number): number[] {
  const below = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && stat(Number(name))?.[1] === String(pid))
    .flatMap(name => family(Number(name)))
  return [pid, ...below]
}

/** The fields of /proc/PID/stat after the command's name. */
function stat(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}
