/** Real servers as child processes: on a free loopback port, with a folder of their own, removed with the test. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { inProject } from './root.js'
import { waitUntil } from './wait.js'

export interface ServerKind {
  readonly command: string
  args(port: number, folder: string): string[]
  env?(port: number, folder: string): Record<string, string>
  /** Resolves to true once the server on `port` responds in its own protocol. */
  answers(port: number): Promise<boolean>
}

export interface ChildServer {
  readonly port: number
  /** Sends a signal: SIGSTOP makes it accept connections but never respond, until SIGCONT. */
  signal(name: NodeJS.Signals): void
  /** Kills the server; its port then refuses connections. */
  kill(): Promise<void>
  /** Starts it again on the same port and folder. */
  start(): Promise<void>
  /** Kills it for good and removes its folder. */
  stop(): Promise<void>
}

/** The first of `names` found on PATH or in `folders`, as a path; undefined when there is none. */
export function findCommand(names: readonly string[], folders: readonly string[] = []): string | undefined {
  const places = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), ...folders]
  return names.flatMap(name => places.map(place => join(place, name))).find(path => existsSync(path))
}

/** A TCP port of 127.0.0.1 that has just been free. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

/** Starts a server and waits until it responds. Another process may take the free port first, hence the attempts. */
export async function startServer(kind: ServerKind, attempts = 3): Promise<ChildServer> {
  const server = childServer(kind, await freePort())
  try {
    await server.start()
    return server
  } catch (error) {
    await server.stop()
    if (attempts > 1) return startServer(kind, attempts - 1)
    throw error
  }
}

function childServer(kind: ServerKind, port: number): ChildServer {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  const log = join(folder, 'server.log')
  let child: ChildProcess | undefined

  // A test process that dies early must not leave a server behind; the server is unref'd and never keeps the process
  // alive.
  const abandon = () => {
    child?.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', abandon)

  const lastWords = () => (existsSync(log) ? readFileSync(log, 'utf8').slice(-2000) : 'its folder is gone')
  const running = () => child?.pid !== undefined && child.exitCode === null && child.signalCode === null
  const kill = async () => {
    if (!child || !running()) return
    const ended = new Promise(resolve => child?.once('exit', resolve))
    child.ref()
    child.kill('SIGKILL')
    await ended
  }

  return {
    port,
    kill,
    signal: name => void child?.kill(name),
    async start() {
      const output = openSync(log, 'a')
      child = spawn(kind.command, kind.args(port, folder), {
        cwd: folder,
        env: { ...process.env, ...kind.env?.(port, folder) },
        stdio: ['ignore', output, output],
      })
      closeSync(output)
      child.once('error', () => undefined)
      child.unref()
      try {
        await waitUntil(`${kind.command} on port ${port}`, () => !running() || kind.answers(port))
      } catch (cause) {
        throw new Error(`${kind.command} does not answer: ${lastWords()}`, {
          cause,
        })
      }
      if (!running()) throw new Error(`${kind.command} ended: ${lastWords()}`)
    },
    async stop() {
      process.off('exit', abandon)
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Folders besides PATH that contain servers built or fetched for the tests. */
export const serverFolders = [inProject('..', 'shared', 'bin'), inProject('.cache', 'ferretdb')]
