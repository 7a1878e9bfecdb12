/** Logs: JSON lines on stdout, readable text on a terminal, secrets removed. The only user of pino. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { type DestinationStream, type Logger, pino } from 'pino'
import type { Log } from '../types.js'
import { isColourful, terminalLine } from './terminal.js'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export interface LogOptions {
  readonly level: LogLevel
  /** Readable text for a terminal, instead of JSON. */
  readonly terminal: boolean
  /** Id of the process, when several write one log. */
  readonly worker?: number | undefined
  /** Where the JSON lines go instead of stdout; for tests. */
  readonly destination?: DestinationStream
}

export interface ClosableLog extends Log {
  /** Resolves once all lines are written, or cannot be. Later lines are dropped. */
  close(): Promise<void>
}

type Stdout = ReturnType<typeof pino.destination>

/** How long a process that ends waits for a reader of its last lines. */
const LAST_LINES_MS = 1000
/** Lines buffered while stdout is blocked; more are dropped, since a stalled reader must not stop requests. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024
/**
 * Several processes may write to one pipe: writes up to this size stay together (POSIX, PIPE_BUF), and so do their
 * lines.
 */
const MAX_WRITE_BYTES = 4096

/** Fields that hold credentials, redacted in the first three levels of a line. */
const SECRET_FIELDS = [
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'x-api-key',
  'apiKey',
  'apiSecret',
  'secret',
  'password',
  'token',
  'accessToken',
  'refreshToken',
  'access_token',
  'refresh_token',
  'webhook_secret',
]

/** True when `text` is a level that can be set, such as by LOG_LEVEL. */
export function isLogLevel(text: string): text is LogLevel {
  return (LOG_LEVELS as readonly string[]).includes(text)
}

export function createLog({ level, terminal, worker, destination }: LogOptions): ClosableLog {
  const stdout = destination === undefined ? openStdout() : undefined
  const stream = destination ?? (stdout as Stdout)
  const logger = pino(
    {
      level,
      base: worker === undefined ? null : { worker },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      serializers: { err: errorFields },
      redact: { paths: SECRET_FIELDS.flatMap(redactPaths), censor: '[redacted]' },
    },
    terminal ? readable(stream) : stream,
  )
  return {
    ...wrap(logger),
    async close() {
      logger.level = 'silent'
      if (stdout !== undefined) await closeStdout(stdout)
    },
  }
}

/**
 * Only the standard fields of an error: libraries attach commands, requests and addresses to theirs, including
 * credentials.
 */
function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { name, message, stack } = error
  const code = 'code' in error ? error.code : undefined
  return { type: name, message, code, stack }
}

function openStdout(): Stdout {
  const options = { fd: 1, sync: false, maxLength: MAX_BUFFERED_BYTES, maxWrite: MAX_WRITE_BYTES }
  // A full disk must not end the process. Lines are buffered until there is room.
  return pino.destination(options).on('error', () => {})
}

/** Without this, pino would try to write the last lines at the exit for ever, even if their reader has gone. */
async function closeStdout(stdout: Stdout): Promise<void> {
  const written = once(stdout, 'close').catch(() => undefined)
  stdout.end()
  await Promise.race([written, sleep(LAST_LINES_MS)])
  stdout.destroy()
}

function readable(destination: DestinationStream): DestinationStream {
  const colourful = isColourful(true, process.env)
  return { write: line => destination.write(terminalLine(line, colourful)) }
}

function redactPaths(field: string): string[] {
  const key = `["${field}"]`
  return [key, `*${key}`, `*.*${key}`]
}

function wrap(logger: Logger): Log {
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
  }
}
