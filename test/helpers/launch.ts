/** Programs in processes of their own: started, watched until they are ready, stopped. None outlives this process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { waitUntil } from './wait.js'

/** Enough even on a slow and busy machine. */
const START_MS = 60_000
const STOP_MS = 5_000

export interface Launch {
  /** What the program prints once it is ready, or the port of 127.0.0.1 on which it then accepts connections. */
  readonly ready: RegExp | number
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string | undefined
  readonly onLine?: (line: string) => void
}

export type Exit = readonly [number | null, NodeJS.Signals | null]

export interface Launched {
  readonly pid: number
  /** What `ready` found in the output. */
  readonly match: readonly string[]
  /** Everything it has printed so far. */
  out(): string
  isRunning(): boolean
  signal(name: NodeJS.Signals): void
  /** Resolves to its exit code and signal when it has ended and its output is complete. */
  exited(): Promise<Exit>
  /** Asks it to end, and kills it if it does not within 5 s. */
  stop(): Promise<Exit>
  /** Kills it at once, as in a crash. */
  kill(): Promise<void>
}

const children = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

/** Starts a program; rejects with its output when it does not get ready. */
export async function launch(
  command: string,
  args: readonly string[],
  { ready, env = process.env, cwd, onLine }: Launch,
): Promise<Launched> {
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  children.add(child)
  let out = ''
  const exited = once(child, 'exit') as Promise<unknown> as Promise<Exit>
  const closed = once(child, 'close') as Promise<unknown> as Promise<Exit>
  const forget = () => children.delete(child)
  exited.then(forget, forget)
  // Of a program that is not there.
  closed.catch(error => {
    out += String(error)
  })
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', text => {
      out += text
    })
    if (onLine) createInterface({ input: stream }).on('line', onLine)
  }
  const isRunning = () => child.pid !== undefined && child.exitCode === null && child.signalCode === null
  const isReady = async () => {
    if (typeof ready === 'number') return (await accepts(ready)) && ['']
    return ready.exec(out)
  }
  const match = await waitUntil(command, async () => (await isReady()) || !isRunning(), START_MS).catch(
    () => true as const,
  )
  if (match === true) {
    child.kill('SIGKILL')
    // Wait for the rest of its output.
    await closed.catch(() => undefined)
    throw new Error(`${command} did not start, ended with ${child.exitCode ?? child.signalCode}: ${out}`)
  }
  const stop = async () => {
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    const exit = await exited
    clearTimeout(timer)
    return exit
  }
  return {
    pid: child.pid as number,
    match,
    out: () => out,
    isRunning,
    signal: name => child.kill(name),
    async exited() {
      await closed
      return exited
    },
    stop,
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** Whether connections to a port of 127.0.0.1 are accepted. */
function accepts(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    const end = (isOpen: boolean) => () => {
      resolve(isOpen)
      socket.destroy()
    }
    socket.once('connect', end(true)).once('error', end(false))
  })
}

export interface Finish {
  /** How long it may take. */
  readonly seconds: number
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string | undefined
  /** The content of its standard input. */
  readonly input?: string
}

export interface Finished {
  readonly stdout: string
  readonly stderr: string
  /** Undefined for a program that is not there. */
  readonly code: number | null | undefined
  /** Whether it was killed because it took too long. */
  readonly isCut: boolean
}

/** Runs a program to its end. */
export async function finish(
  command: string,
  args: readonly string[],
  { seconds, env = {}, cwd, input }: Finish,
): Promise<Finished> {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env } })
  children.add(child)
  const out: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] }
  for (const name of ['stdout', 'stderr'] as const) child[name].on('data', chunk => out[name].push(chunk))
  child.stdin.on('error', () => undefined).end(input)
  let isCut = false
  const timer = setTimeout(() => {
    isCut = true
    child.kill('SIGKILL')
  }, seconds * 1000)
  const code = await new Promise<number | null | undefined>(resolve => {
    child.once('error', () => resolve(undefined)).once('close', resolve)
  })
  clearTimeout(timer)
  children.delete(child)
  const text = (name: 'stdout' | 'stderr') => Buffer.concat(out[name]).toString()
  return { stdout: text('stdout'), stderr: text('stderr'), code, isCut }
}
