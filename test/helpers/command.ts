/** Runs a command of `sluice` in the test's own process. */
import { PassThrough } from 'node:stream'
import { Failure } from '../../gateway/load.js'
import { run } from '../../tools/run.js'

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

export interface Surroundings {
  readonly columns?: number
  readonly env?: NodeJS.ProcessEnv
  /** What stands on standard input. */
  readonly stdin?: string
}

/** What `sluice ARGS` would print and end with. */
export async function sluice(args: readonly string[], surroundings: Surroundings = {}): Promise<Ran> {
  const { columns = 100, env = {}, stdin = '' } = surroundings
  let [out, err] = ['', '']
  const io = {
    stdin: new PassThrough().end(stdin),
    env,
    columns,
    watched: false,
    out(text: string) {
      out += text
    },
    err(text: string) {
      err += text
    },
    style: (_style: string, text: string) => text,
  }
  const code = await run(args, io).catch(error => {
    // As cli.ts does.
    if (!(error instanceof Failure)) throw error
    err += `${error.message}\n`
    return 1
  })
  return { code, out, err }
}
