/**
 * `sluice serve --watch`: the gateway in a child process, which is restarted when the code of a plugin changes. Node
 * keeps every module it has loaded, so new code needs a new process; it is tried in one before the old one ends.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type Dirent, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { gatewayFileOf } from '../config/files.js'
import { readPluginList } from '../config/plugin-list.js'
import { findPlugin } from '../gateway/configured/third-party/find.js'
import type { ExitCode } from './command.js'
import type { Io } from './io.js'

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
  const cli = fileURLToPath(new URL('./cli.js', import.meta.url))
  return spawn(process.execPath, [...process.execArgv, cli, ...args], { stdio })
}

const CODE = /\.([cm]?[jt]s|json)$/
/** A bound, since a plugin may be in a folder with many other files. */
const MOST_FILES = 2000

/** A text that changes with the list of plugins, and with the files in their folders. */
function markOfPlugins(config: string, env: NodeJS.ProcessEnv): string {
  const { names } = readPluginList(config, env)
  const folders = names.flatMap(name => {
    const file = findPlugin(name, gatewayFileOf(config))
    return file === undefined ? [] : dirname(file)
  })
  return JSON.stringify([names, [...new Set(folders)].flatMap(marksIn)])
}

function marksIn(folder: string): string[] {
  const files: string[] = []
  const folders = [folder]
  for (let next = folders.pop(); next !== undefined && files.length < MOST_FILES; next = folders.pop()) {
    for (const entry of entriesOf(next)) {
      const path = join(next, entry.name)
      if (entry.isDirectory()) folders.push(path)
      else if (CODE.test(entry.name)) files.push(path)
    }
  }
  return files.sort().map(markOfFile)
}

/** The entries of a folder without installed and hidden ones; none if the folder has gone. */
function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).filter(
      ({ name }) => name !== 'node_modules' && name[0] !== '.',
    )
  } catch {
    return []
  }
}

function markOfFile(file: string): string {
  const info = statSync(file, { throwIfNoEntry: false })
  return `${file} ${info?.size} ${info?.mtimeMs}`
}
