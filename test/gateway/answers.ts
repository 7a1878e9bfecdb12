/** What clients are told under a policy: real files, matcher and counters, on a virtual clock. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { listProblems } from '../../config/problem.js'
import { load } from '../../gateway/configured/load.js'
import { rateLimitFields } from '../../gateway/forward/fields.js'
import { rejectionOf } from '../../gateway/forward/reject.js'
import { factsOf } from '../../gateway/listen/written.js'
import { builtIn } from '../../gateway/plugins.js'
import type { Verdict } from '../../gateway/verdict.js'
import { quiet } from '../../tools/config.js'
import { Simulation } from '../../tools/replay/simulation.js'

/** The gateway.yaml for the folder that is passed to `answersOf`. */
export const GATEWAY =
  'version: 1\nupstreams: { app: { url: "http://127.0.0.1:9" } }\nroutes: [{ path: /**, upstream: app }]\n'

export type Requests = readonly {
  readonly pauseMs: number
  readonly durationMs: number
  readonly method: string
  readonly path: string
  readonly host: string
  readonly client: string
}[]

const PLUGINS = { ...builtIn, names: [], files: new Map<string, string>() }

/** Everything that the clients of these requests are told. */
export async function answersOf(
  folder: string,
  files: Readonly<Record<string, object>>,
  requests: Requests,
): Promise<unknown[]> {
  const policies = join(folder, 'policies')
  rmSync(policies, { recursive: true, force: true })
  mkdirSync(policies)
  for (const [name, file] of Object.entries(files)) {
    writeFileSync(join(policies, `${name}.yaml`), JSON.stringify(file))
  }
  const loaded = await load(folder, {}, quiet, { running: PLUGINS })
  if ('problems' in loaded) throw new Error(listProblems(loaded.problems))
  const simulation = new Simulation(loaded)
  const answers: unknown[] = []
  let at = Date.UTC(2026, 0, 1)
  for (const [i, { pauseMs, durationMs, ...known }] of requests.entries()) {
    at += pauseMs
    const facts = factsOf({ id: String(i), network: known.client, ...known })
    const rest = { project: undefined, status: undefined, wasRefused: undefined, wasAway: false }
    const judged = await simulation.judge({ at, facts, durationMs, ...rest })
    if (judged.result === 'unserved') answers.push(judged.code)
    else {
      const verdict = judged.verdict as Verdict
      const refusal = verdict.allowed ? undefined : rejectionOf(verdict, '')
      answers.push({ fields: rateLimitFields(verdict, 'both'), refusal, holdsSlot: verdict.holdsSlot })
    }
  }
  await simulation.close()
  return answers
}
