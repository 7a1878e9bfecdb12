/** The log of a gateway process, and which of its faults it survives. */

import { Failure } from '../errors.js'
import { boundedLog } from '../observe/bounded-log.js'
import { type ClosableLog, createLog, isLogLevel, LOG_LEVELS, type LogLevel } from '../observe/log.js'
import type { Log } from '../types.js'
import { variable } from './variable.js'

/** The log on stdout, at LOG_LEVEL; `worker` is the id of a process that shares it. @throws {Failure} */
export function openLog(worker?: number): ClosableLog {
  return createLog({ level: logLevel(process.env), terminal: process.stdout.isTTY === true, worker })
}

/** @throws {Failure} */
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
