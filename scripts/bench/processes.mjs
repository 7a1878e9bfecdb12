/** Starts programs, pins them to a core, and measures them. */
import { spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure, onPath } from '../lib/run.mjs'

/** The proxy has this core to itself; everything else is on the other. */
export const PROXY_CORE = '0'
export const LOAD_CORE = '1'
export const BOTH_CORES = '0,1'

const TICKS_PER_SECOND = Number(spawnSync('getconf', ['CLK_TCK']).stdout?.toString() || 100)
const children = new Set()
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

/**
 * Starts a program on a core and waits until it accepts connections on `port` or, with `tells`, has printed a line of
 * JSON.
 *
 * @returns its pid, what it printed (`told`), and how to stop it
 */
export async function start(core, command, args, { port, tells = false, env = {}, cwd } = {}) {
  const child = spawn('taskset', ['-c', core, command, ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', tells ? 'pipe' : 'ignore', 'pipe'],
  })
  let line
  if (tells)
    createInterface({ input: child.stdout }).once('line', text => {
      line = text
    })
  children.add(child)
  let said = ''
  child.stderr.on('data', chunk => {
    said = (said + chunk).slice(-2000)
  })
  const ended = new Promise(resolve => child.once('exit', resolve))
  const isReady = async () => (tells ? line !== undefined : port === undefined || (await accepts(port)))
  for (let tries = 0; !(await isReady()); tries += 1) {
    if (child.exitCode !== null || tries > 600) throw new Failure(`${command} did not start: ${said}`)
    await sleep(50)
  }
  return {
    pid: child.pid,
    told: tells ? JSON.parse(line) : undefined,
    async stop() {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 2000)
      await ended
      clearTimeout(timer)
      children.delete(child)
    },
  }
}

/** CPU time of a process and all its descendants, in microseconds. */
export function cpuUs(pid) {
  let ticks = 0
  for (const one of family(pid)) {
    const fields = stat(one)
    if (fields !== undefined) ticks += Number(fields[11]) + Number(fields[12])
  }
  return (ticks * 1e6) / TICKS_PER_SECOND
}

/** Resident memory of a process and all its descendants, in bytes. */
export function residentBytes(pid) {
  let kilobytes = 0
  for (const one of family(pid)) {
    const status = readFileSync(`/proc/${one}/status`, 'utf8')
    kilobytes += Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0)
  }
  return kilobytes * 1024
}

/** CPU time that the whole machine has used, in microseconds over all cores: shows whether a sample was disturbed. */
export function machineBusyUs() {
  const [user, nice, system, , , irq, softirq] = readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)[0]
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number)
  return ((user + nice + system + irq + softirq) * 1e6) / TICKS_PER_SECOND
}

export async function freePort() {
  const server = createServer()
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  await new Promise(resolve => server.close(resolve))
  return port
}

export function require(...commands) {
  const missing = commands.filter(command => !onPath(command))
  if (missing.length > 0) {
    throw new Failure(
      `The benchmark needs ${missing.join(', ')}: apt-get install wrk nginx redis-server; for all rows also nghttp2-client openssl libnginx-mod-http-lua lua-nginx-redis haproxy`,
    )
  }
}

function accepts(port) {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true) ?? socket.destroy())
    socket.once('error', () => resolve(false))
  })
}

function family(pid) {
  const below = []
  for (const name of readdirSync('/proc')) {
    if (/^\d+$/.test(name) && stat(name)?.[1] === String(pid)) below.push(...family(name))
  }
  return [pid, ...below]
}

/** The fields of /proc/PID/stat after the command's name. */
function stat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}
