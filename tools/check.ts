/** `sluice check`: everything that is wrong with a configuration, or probably not meant, without running it. */

import { listProblems } from '../config/problem.js'
import { type Configuration, type InvalidConfiguration, load } from '../gateway/configured/load.js'
import { type Examined, examineRedis } from '../gateway/decide/redis/examine.js'
import { Failure } from '../gateway/errors.js'
import { environmentProblems } from '../gateway/run/environment.js'
import { didYouMean } from './arguments.js'
import { CONFIG, defineCommand, type ExitCode, NO_OPERANDS, Unusable } from './command.js'
import { quiet } from './config.js'
import type { Io } from './io.js'
import {
  endpointLimits,
  type LimitsOf,
  limitsByColumn,
  limitsOfProject,
  writeEndpointLimits,
  writeLimits,
} from './limits.js'
import { type Finding, formatFinding, lint } from './lint/lint.js'
import { count } from './text.js'

export const check = defineCommand({
  name: 'check',
  summary: 'Validate the configuration without starting the gateway',
  operands: NO_OPERANDS,
  options: {
    config: CONFIG,
    table: { type: 'boolean', help: 'also show the limits that apply in the end, by plan and environment' },
    project: { type: 'string', value: 'ID', help: 'show the limits of this project, overrides included' },
    connect: { type: 'boolean', help: 'also connect to the configured Redis, and say whether it can count' },
    strict: { type: 'boolean', help: 'treat warnings as faults: exit code 1' },
    'report-only-days': {
      type: 'string',
      value: 'DAYS',
      default: '30',
      help: 'warn of report-only rules whose "since" is more than DAYS ago',
    },
    json: { type: 'boolean', help: 'one JSON object instead of text' },
  },
  details: `Reports every problem at once, as file:line:col path: sentence. When there is none, it warns of likely mistakes: patterns and rules that never take effect, buckets without a quota, numbers that are never reached, rules that have been report-only for long, certificates that have expired or end within 14 days. Notes name keys that have no bound. docs/reference/errors.md explains each sentence.

It opens no port, data folder or database: whether an address is free and stored keys are whole shows at the start.

With --connect, a Redis that cannot count is a fault. It connects from here, as the gateway would.

Exit code 0 when good, 1 when not. Warnings leave it at 0, except with --strict; notes never count.`,
  example:
    'sluice check --config ./config --strict\nsluice check --table\nsluice check --project acme-production',
  async run({ values }, io) {
    const days = daysOf(values['report-only-days'])
    const loaded = await loadTried(values.config, io.env)
    if ('problems' in loaded) {
      if (!values.json) throw new Failure(listProblems(loaded.problems))
      const findings = loaded.problems.map(problem => ({ severity: 'error', ...problem }))
      io.out(`${JSON.stringify({ good: false, findings }, null, 2)}\n`)
      return 1
    }
    const limits = limitsAsked(loaded, values)
    const findings = lint(loaded, { now: Date.now(), reportOnlyDays: days })
    if (!values.json) writeFindings(loaded, findings, limits, io)
    const redis = values.connect ? await examined(loaded) : undefined
    const good = redis?.counts !== false
    if (values.json) {
      const { revision } = loaded.compiled.policy
      const tables = limits && { limits, rules: endpointLimits(loaded) }
      io.out(`${JSON.stringify({ good, revision, findings, redis, ...tables }, null, 2)}\n`)
    } else if (redis !== undefined) io.out(`${redis.text}\n`)
    return good ? exitCode(findings, values.strict) : 1
  },
})

/** Loads the configuration as the gateway would at start, but opens no listeners, data folder and counter store. */
async function loadTried(
  path: string,
  env: NodeJS.ProcessEnv,
): Promise<Configuration | InvalidConfiguration> {
  const loaded = await load(path, env, quiet)
  if ('problems' in loaded) return loaded
  await loaded.compiled.close()
  const problems = await environmentProblems(loaded.config, env)
  return problems.length === 0 ? loaded : { problems, sources: loaded.sources }
}

function writeFindings(
  loaded: Configuration,
  findings: readonly Finding[],
  limits: readonly LimitsOf[] | undefined,
  io: Io,
): void {
  for (const finding of findings) {
    io.out(`${io.style(finding.severity === 'warning' ? 'yellow' : 'dim', formatFinding(finding))}\n`)
  }
  io.out(`${summaryOf(loaded, findings)}\n`)
  if (limits === undefined) return
  for (const one of limits) writeLimits(one, io)
  writeEndpointLimits(endpointLimits(loaded), io)
}

/** What the configured Redis is like; without one, each process counts for itself. */
function examined({ config }: Configuration): Promise<Examined> {
  const { redis } = config.gateway
  if (redis !== '') return examineRedis(redis)
  return Promise.resolve({ counts: true, text: 'No Redis is configured: each process counts for itself.' })
}

function limitsAsked(
  loaded: Configuration,
  { table, project }: { readonly table: boolean; readonly project: string | undefined },
): LimitsOf[] | undefined {
  if (project === undefined) return table ? limitsByColumn(loaded) : undefined
  const limits = limitsOfProject(loaded, project)
  if (limits !== undefined) return [limits]
  const ids = loaded.config.projects.map(({ id }) => id)
  throw new Unusable(`There is no project "${project}".${didYouMean(project, ids)}`)
}

function daysOf(text: string): number {
  if (/^\d{1,5}$/.test(text)) return Number(text)
  throw new Unusable(`--report-only-days must be a whole number of days, but it is "${text}".`)
}

function summaryOf({ config, compiled }: Configuration, findings: readonly Finding[]): string {
  const { gateway, projects, policies, access } = config
  const warnings = findings.filter(({ severity }) => severity === 'warning').length
  return (
    `${config.gatewayFile}: ${warnings === 0 ? 'good' : `${count(warnings, 'warning')}`}. ` +
    `${count(Object.keys(gateway.upstreams).length, 'upstream')}, ${count(projects.length, 'project')}, ` +
    `${count(policies.length + access.length, 'policy file')}, revision ${compiled.policy.revision}.`
  )
}

function exitCode(findings: readonly Finding[], strict: boolean): ExitCode {
  return strict && findings.some(({ severity }) => severity === 'warning') ? 1 : 0
}
