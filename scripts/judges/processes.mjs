/** Programs that the judges run: servers that run until stopped, and programs that finish in bounded time. */
import { spawn, spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../lib/run.mjs'

const MOST_OUTPUT = 32 * 1024 * 1024
const START_MS = 30_000
const children = new Set()
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})
// Ends through the exit handler, which kills every child process.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))

/**
 * Starts a server and waits until it prints a line that matches `ready`.
 *
 * @returns the match, `isRunning` and `stop`
 */
export async function serve(command, args, ready, env = {}) {
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.add(child)
  const ended = new Promise(resolve => child.once('close', resolve))
  let said = ''
  let match
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', line => {
      said = `${said}${line}\n`.slice(-2000)
      match ??= ready.exec(line)
    })
  }
  const isRunning = () => child.exitCode === null && child.signalCode === null
  for (let waited = 0; match === undefined || match === null; waited += 50) {
    if (!isRunning() || waited > START_MS) throw new Failure(`${command} did not start: ${said}`)
    await sleep(50)
  }
  return {
    match,
    isRunning,
    async stop() {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
      await ended
      clearTimeout(timer)
      children.delete(child)
    },
  }
}

/**
 * Runs a program to its end, or for at most `seconds`.
 *
 * @returns what it printed, its exit code, and whether it was cut off
 */
export async function finish(command, args, { seconds, env = {}, input, cwd } = {}) {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env } })
  children.add(child)
  const out = { stdout: [], stderr: [] }
  let size = 0
  for (const name of ['stdout', 'stderr']) {
    child[name].on('data', chunk => {
      size += chunk.length
      if (size < MOST_OUTPUT) out[name].push(chunk)
    })
  }
  child.stdin.on('error', () => undefined).end(input)
  let isCut = false
  const timer = setTimeout(() => {
    isCut = true
    child.kill('SIGKILL')
  }, seconds * 1000)
  const code = await new Promise(resolve => {
    child.once('error', () => resolve(undefined))
    child.once('close', resolve)
  })
  clearTimeout(timer)
  children.delete(child)
  const [stdout, stderr] = [out.stdout, out.stderr].map(chunks => Buffer.concat(chunks).toString())
  return { stdout, stderr, code, isCut }
}

/** True when a command runs and exits with 0. */
export function works(command, args, env = {}) {
  const { status } = spawnSync(command, args, {
    env: { ...process.env, ...env },
    stdio: 'ignore',
    timeout: 60_000,
  })
  return status === 0
}
