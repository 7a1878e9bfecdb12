import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'

/** The directory service in a process of its own, which can be killed. */
export interface ServiceProcess {
  readonly url: string
  /** Sends SIGKILL; resolves when the process has ended. */
  kill(): Promise<void>
}

const serviceModule = new URL('../../../services/directory/index.js', import.meta.url).href

const script = `
  const { start } = await import(process.env.SERVICE_MODULE)
  const quiet = () => undefined
  const log = { debug: quiet, info: quiet, warn: quiet, error: (fields, text) => console.error(text, fields) }
  const { url } = await start({ env: process.env, log })
  console.log(url)
`

/** Starts it with these settings and waits until it listens. It is killed with the test. */
export async function startServiceProcess(t: Test, env: Record<string, string>): Promise<ServiceProcess> {
  const args = [...process.execArgv, '--input-type=module', '--eval', script]
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, ...env, SERVICE_MODULE: serviceModule },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const kill = () => end(child)
  t.teardown(kill)
  for await (const url of createInterface({ input: child.stdout })) return { url, kill }
  throw new Error(`the service ended with ${child.exitCode ?? child.signalCode}`)
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}
