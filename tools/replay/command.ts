/** `sluice replay`: what a policy would have done to the requests of a log. */
import type { Configuration } from '../../gateway/configured/load.js'
import { type Arguments, CONFIG, defineCommand, type ExitCode, Unusable } from '../command.js'
import type { Io } from '../io.js'
import { describeIntake, LogIntake } from '../log/intake.js'
import { readLogs } from '../log/read.js'
import { count } from '../text.js'
import { Seen } from './accuracy.js'
import type { PolicyDocument, ReplayDocument } from './document.js'
import { FormatReader } from './format.js'
import { loadPolicy, rulesOf } from './policies.js'
import type { Sampling } from './records.js'
import { type Judged, Simulation } from './simulation.js'
import { Differences, Recorded, Tally } from './tally.js'
import { replayText } from './text.js'
import type { Traffic } from './traffic.js'

const OPTIONS = {
  policies: {
    type: 'string',
    value: 'DIR',
    help: 'the candidate: a folder with gateway.yaml, or a folder of policy files',
  },
  against: { type: 'string', value: 'DIR', help: 'a policy to compare the candidate with' },
  config: { ...CONFIG, help: 'gateway.yaml or its folder, for folders that hold only policy files' },
  format: {
    type: 'string',
    value: 'NAME',
    default: 'auto',
    help: 'records, combined (nginx, Apache), envoy or json; auto detects it',
  },
  map: {
    type: 'string',
    value: 'FIELD=NAME',
    multiple: true,
    help: 'where a JSON log has time, method, path, host, client, duration, status, project, ja3, ja4, auth, header:NAME',
  },
  host: { type: 'string', value: 'NAME', help: 'host for lines that name none' },
  json: { type: 'boolean', help: 'print JSON' },
} as const

export const replay = defineCommand({
  name: 'replay',
  summary: 'Show what a policy would have done to the traffic of a log',
  operands: { usage: 'FILE...|-', least: 1, most: Number.POSITIVE_INFINITY },
  options: OPTIONS,
  details: `FILE is the gateway's own log (with log.decisions: all) or an access log, plain or gzip; "-" is standard input.
Requests pass through the gateway's own rules and counters, on a clock that the log sets. "Accuracy" says what the log cannot tell.

Exit code 0; 1 when the candidate refuses requests that the policy of --against admits; 2 when the log has no request or a policy cannot be loaded.`,
  example: `sluice replay gateway.log --policies ./policies-new --against ./config
sluice replay access.log --host acme.localhost --policies ./config
sluice replay app.json --map time=ts --map method=req.verb --map path=req.url --policies ./config`,
  run,
})

interface Side {
  readonly policies: string
  readonly loaded: Configuration
  readonly simulation: Simulation
  readonly tally: Tally
}

async function run({ values, positionals }: Arguments<typeof OPTIONS>, io: Io): Promise<ExitCode> {
  if (values.policies === undefined) throw new Unusable('Name the candidate with --policies DIR.')
  const sideOf = async (policies: string): Promise<Side> => {
    const loaded = await loadPolicy(policies, values.config, io.env)
    return { policies, loaded, simulation: new Simulation(loaded), tally: new Tally() }
  }
  const candidate = await sideOf(values.policies)
  const against = values.against === undefined ? undefined : await sideOf(values.against)
  const policies = [candidate.loaded, ...(against ? [against.loaded] : [])]
  const parts = [...new Set(rulesOf(policies).flatMap(({ key }) => key))]
  const sampling: Sampling = { dropped: new Map(), admitted: 0, sample: 1 }
  const formats = new FormatReader(values, sampling)
  const intake = new LogIntake()
  const seen = new Seen()
  const differences = new Differences()
  const recorded = new Recorded()

  try {
    await readLogs({
      names: positionals,
      reader: () => formats.reader(),
      async take(traffic) {
        seen.add(traffic, parts)
        const judged = await judge(candidate, traffic)
        recorded.add(traffic, judged)
        if (against !== undefined) differences.add(traffic, judged, await judge(against, traffic))
      },
      intake,
      io,
      now: Date.now(),
    })
  } finally {
    await Promise.all([candidate.simulation.close(), against?.simulation.close()])
  }
  if (intake.used === 0) throw new Unusable(nothingFound(positionals, intake))

  const document: ReplayDocument = {
    version: 1,
    input: { ...describeIntake(intake), formats: [...formats.found].map(({ name }) => name) },
    candidate: describe(candidate),
    against: against === undefined ? null : describe(against),
    difference: against === undefined ? null : differences.describe(),
    recorded: recorded.describe(),
    accuracy: seen.describe(policies, formats.found, sampling, intake),
  }
  io.out(values.json ? `${JSON.stringify(document, null, 2)}\n` : replayText(document, intake, io))
  return (document.difference?.newlyRefused.requests ?? 0) > 0 ? 1 : 0
}

async function judge({ simulation, tally }: Side, traffic: Traffic): Promise<Judged> {
  const judged = await simulation.judge(traffic)
  tally.add(traffic, judged)
  return judged
}

function describe({ policies, loaded, tally }: Side): PolicyDocument {
  return { policies, revision: loaded.compiled.policy.revision, ...tally.describe() }
}

function nothingFound(names: readonly string[], { lines, shown: [first] }: LogIntake): string {
  const found = `No request in ${names.join(', ')}: ${count(lines, 'line')} read.`
  const why = first === undefined ? '' : ` ${first.file}:${first.line}: ${first.reason}.`
  return `${found}${why} Formats are records, combined, envoy, and json with --map.`
}
