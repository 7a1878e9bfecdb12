/**
 * `sluice serve --watch`: the gateway in a child process, which is restarted when the code of a plugin changes. Node
 * keeps every module it has loaded, so new code needs a new process; it is tried in one before the old one ends.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { ExitCode } from '../command.js'
import type { Io } from '../io.js'
import { markOfPlugins } from './plugin-code.js'

const LOOK_MS = 500

/** Runs until it is stopped. */
export async function serveWatched(config: string, io: Io): Promise<ExitCode> {
  const say = (sentence: string) => io.err(`watch: ${sentence}\n`)
  let gateway: ChildProcess | undefined
  let stopping = false
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      stopping ||= signal !== 'SIGHUP'
      gateway?.kill(signal)
    })
  }
  const start = () => {
    const child = sluice(['serve', '--config', config], 'inherit')
    child.once('exit', (code, signal) => {
      // It ends with this signal when its terminal has gone.
      stopping ||= signal === 'SIGHUP'
      if (gateway !== child) return
      gateway = undefined
      if (!stopping && code !== 0) say('The gateway has ended. It starts again when a plugin changes.')
    })
    return child
  }

  let mark = markOfPlugins(config, io.env)
  gateway = start()
  while (!stopping) {
    await sleep(LOOK_MS)
    const now = markOfPlugins(config, io.env)
    if (stopping || now === mark) continue
    mark = now
    const problems = await problemsOf(config)
    if (problems !== undefined) {
      say(`A plugin has changed, and cannot be used:\n${problems}`)
      if (gateway !== undefined) say('The gateway keeps running with the old code.')
      continue
    }
    say('A plugin has changed: starting again.')
    const former = gateway
    gateway = undefined
    await ended(former)
    if (!stopping) gateway = start()
  }
  await ended(gateway)
  return 0
}

async function ended(gateway: ChildProcess | undefined): Promise<void> {
  if (gateway === undefined || gateway.exitCode !== null || gateway.signalCode !== null) return
  gateway.kill('SIGTERM')
  await once(gateway, 'exit')
}

/** The problems found by `sluice check` in a new process; undefined when there are none. */
async function problemsOf(config: string): Promise<string | undefined> {
  const check = sluice(['check', '--config', config], ['ignore', 'ignore', 'pipe'])
  let reported = ''
  check.stderr?.on('data', text => {
    reported += text
  })
  const [code] = await once(check, 'close')
  return code === 0 ? undefined : reported.trimEnd()
}

function sluice(args: readonly string[], stdio: 'inherit' | ['ignore', 'ignore', 'pipe']): ChildProcess {
  const cli = fileURLToPath(new URL('../cli.js', import.meta.url))
  return spawn(process.execPath, [...process.execArgv, cli, ...args], { stdio })
}
