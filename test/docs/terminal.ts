/** A shell as a reader has it: later blocks see what earlier ones set; servers keep running in the background. */
import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Test } from 'tap'
import { clockOfTests } from '../helpers/clocks.js'
import { waitUntil } from '../helpers/wait.js'

export interface PageOutput {
  /** Standard output and error, in the order they came. */
  readonly out: string
  /** Commands that exited with a code other than 0 and whose code was not tested. */
  readonly failed: string
}

export interface PageTerminal {
  /** An empty folder, in which the shell starts. */
  readonly folder: string
  run(commands: string): Promise<PageOutput>
  /** Starts a server and waits until something listens on all the ports. Stops what held one of them first. */
  serve(commands: string, ports: readonly number[]): Promise<void>
}

/** How long the commands may take, in ms; the machines of CI are slow. */
const LIMIT = 60_000

/**
 * Opens a shell in a new folder; `programs` are small scripts by name, first on PATH. All of it is removed with the
 * test.
 */
export function openTerminal(
  t: Test,
  env: Readonly<Record<string, string>>,
  programs: Readonly<Record<string, string>>,
): PageTerminal {
  const home = mkdtempSync(join(tmpdir(), 'sluice-page-'))
  const [folder, bin, notes] = ['work', 'bin', 'notes'].map(name => join(home, name)) as [
    string,
    string,
    string,
  ]
  for (const path of [folder, bin, notes]) mkdirSync(path)
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  const shell = spawn('bash', ['--norc', '--noprofile'], {
    cwd: folder,
    env: {
      HOME: home,
      LANG: 'C.UTF-8',
      ...clockOfTests(),
      ...env,
      PATH: `${bin}${delimiter}${process.env.PATH}`,
    },
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const serving = new Map<number, number>()
  // A test that ends early must not leave the servers running either.
  const endAll = () => {
    for (const group of new Set(serving.values())) end(group, 'SIGKILL')
    shell.kill('SIGKILL')
  }
  process.once('exit', endAll)
  t.teardown(() => {
    process.off('exit', endAll)
    endAll()
    rmSync(home, { recursive: true, force: true, maxRetries: 5 })
  })
  // With job control each background program has a process group of its own.
  shell.stdin.write(`set -mE; trap 'echo "$BASH_COMMAND" >> ${notes}/failed' ERR\n`)

  let count = 0
  const note = (name: string) => join(notes, `${count}.${name}`)
  const noted = (name: string) => (existsSync(note(name)) ? readFileSync(note(name), 'utf8') : '')
  const enter = async (commands: string, how: (script: string) => string) => {
    count += 1
    writeFileSync(note('sh'), commands)
    shell.stdin.write(`${how(`. ${note('sh')} > ${note('out')} 2>&1 < /dev/null`)} > ${note('end')}\n`)
    await waitUntil(`the end of ${commands}`, () => noted('end').endsWith('\n'), LIMIT)
  }

  return {
    folder,
    async run(commands) {
      rmSync(join(notes, 'failed'), { force: true })
      await enter(commands, script => `${script}; echo $?`)
      const failed = join(notes, 'failed')
      return {
        out: noted('out').replaceAll('\r\n', '\n'),
        failed: existsSync(failed) ? readFileSync(failed, 'utf8') : '',
      }
    },
    async serve(commands, ports) {
      for (const port of ports) {
        const group = serving.get(port)
        if (group !== undefined) end(group, 'SIGTERM')
        await waitUntil(`port ${port} to be free`, () => isFree(port), LIMIT)
      }
      // Disowned, so that the shell does not report its end in the output of another block.
      await enter(commands, script => `${script} & disown; echo $!`)
      const group = Number(noted('end'))
      for (const port of ports) serving.set(port, group)
      for (const port of ports) {
        await waitUntil(`port ${port} after ${commands}`, () => answers(port), LIMIT).catch(error => {
          throw new Error(noted('out'), { cause: error })
        })
      }
    },
  }
}

function end(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal)
  } catch {
    // It has already ended.
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket.destroy() !== undefined))
    socket.once('error', () => resolve(false))
  })
}

function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer().once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** A free port below the ephemeral range, so that no outgoing connection takes it by chance. */
export async function unusedPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000)
    if (await isFree(port)) return port
  }
}
