/** What the environment tells a gateway process, its log, and which of its faults it survives. */
import { readVariable } from '../../config/environment.js'
import { Failure } from '../errors.js'
import { type ClosableLog, createLog, isLogLevel, LOG_LEVELS, type LogLevel } from '../observe/log.js'
import { boundedLog } from '../observe/log-limits.js'
import type { Log } from '../types.js'

/** The value of a variable, or of the file that `NAME_FILE` names; '' when neither is given. @throws {Failure} */
export function variable(name: string, env: NodeJS.ProcessEnv): string {
  const found = readVariable(name, env)
  if (found && 'fault' in found) throw new Failure(found.fault)
  return found?.value ?? ''
}

/** The log on stdout; `worker` is the id of a process that shares it. */
export function openLog(level: LogLevel, worker?: number): ClosableLog {
  return createLog({ level, terminal: process.stdout.isTTY === true, worker })
}

/** What LOG_LEVEL says. @throws {Failure} */
export function logLevel(env: NodeJS.ProcessEnv): LogLevel {
  const level = variable('LOG_LEVEL', env) || 'info'
  if (isLogLevel(level)) return level
  throw new Failure(`LOG_LEVEL is "${level}"; it must be one of ${LOG_LEVELS.join(', ')}.`)
}

/** An unhandled rejection in a plugin must not end the process. Without plugins it would be our own bug and ends it. */
export function outliveRejections(log: Log): void {
  const faultLog = boundedLog(log)
  process.on('unhandledRejection', error => {
    faultLog.error({ err: error }, 'a promise was rejected and nothing handled it')
  })
}
