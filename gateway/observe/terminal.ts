/** The log in readable form for a terminal: one line for each event, decision and request, instead of JSON. */
import { styleText } from 'node:util'
import type { AccessRecord, Counter, DecisionRecord } from './record-types.js'

/** The fields of every log line. */
interface Line {
  readonly level: string
  readonly time: string
  readonly msg: string
}

type Style = Parameters<typeof styleText>[0]

const LEVELS: Readonly<Record<string, Style>> = { debug: 'dim', info: 'green', warn: 'yellow', error: 'red' }

const VERDICTS: Readonly<Record<DecisionRecord['decision'], string>> = {
  allow: 'allowed',
  deny: 'refused',
  would_deny: 'would refuse',
  error_open: 'uncounted',
  error_closed: 'uncounted',
}

/** No colour without a terminal, on a dumb one, or when NO_COLOR is set to anything (no-color.org). */
export function isColourful(isTerminal: boolean, { NO_COLOR, TERM }: NodeJS.ProcessEnv): boolean {
  return isTerminal && !NO_COLOR && TERM !== 'dumb'
}

/** A line of the JSON log in readable form; ends in a newline. An error's stack follows on its own lines. */
export function terminalLine(json: string, colourful: boolean): string {
  // The caller decides about colours, not Node by what it knows of its own stdout.
  const paint = (style: Style, text: string) =>
    colourful ? styleText(style, text, { validateStream: false }) : text
  const { level, time, msg, ...fields } = JSON.parse(json) as Line
  const front = `${paint('dim', clockOf(time))} ${paint(LEVELS[level] ?? 'reset', level.toUpperCase().padEnd(5))}`
  if (msg === 'decision') return `${front} ${printable(decisionText(fields as DecisionRecord))}\n`
  if (msg === 'request') return `${front} ${printable(requestText(fields as AccessRecord))}\n`
  const { err, ...others } = fields as { err?: { message?: string; stack?: string } }
  const rest = fieldsText(others)
  const message = err?.message === undefined ? '' : `: ${printable(err.message)}`
  const stack = (err?.stack ?? '').split('\n').slice(1)
  const behind = stack.map(call => `\n    ${paint('dim', printable(call.trim()))}`).join('')
  return `${front} ${printable(msg)}${message}${rest === '' ? '' : paint('dim', rest)}${behind}\n`
}

/** `429 refused POST /self-service/recovery acme recovery-flood 31/30 in 60 s, wait 12 s`. */
function decisionText(record: DecisionRecord): string {
  const { decision, sent_status, method, path, project, rule, counters } = record
  // A used-up counter is the one that refused; of several, the one that resets last.
  const spent = counters.filter(({ used, q }) => used === null || used >= q)
  const [counter] = [...(spent.length > 0 ? spent : counters)].sort(
    (one, other) => waitOf(other) - waitOf(one),
  )
  const numbers = counter === undefined ? '' : ` ${spentText(counter)}`
  const waits = counter !== undefined && decision !== 'allow' && decision !== 'error_open'
  const wait = waits && counter.t_ms !== null ? `, wait ${secondsText(counter.t_ms)}` : ''
  return `${sent_status} ${VERDICTS[decision]} ${method} ${path} ${project ?? '-'} ${rule ?? '-'}${numbers}${wait}`
}

/** A number that can be subtracted. */
const waitOf = ({ t_ms }: Counter): number => t_ms ?? Number.MAX_SAFE_INTEGER

function spentText({ used, q, w_ms, lifetime }: Counter): string {
  const window = lifetime ? 'in all' : w_ms === null ? 'at a time' : `in ${secondsText(w_ms)}`
  return `${used ?? '?'}/${q} ${window}`
}

/** `504 GET /reports acme app http://127.0.0.1:3000 2003 ms upstream-timeout: no answer within 2000 ms`. */
function requestText(record: AccessRecord): string {
  const { status, method, path, project, upstream, address, duration_ms, error, cause } = record
  const parts = [status, method ?? '-', path ?? '-', project ?? '-', upstream || '-', address ?? '-']
  const why = error === null ? '' : ` ${error}`
  return `${parts.join(' ')} ${duration_ms} ms${why}${cause === null ? '' : `: ${cause}`}`
}

function secondsText(ms: number): string {
  return `${Math.ceil(ms / 1000)} s`
}

function clockOf(time: string): string {
  const at = new Date(time)
  return `${at.toTimeString().slice(0, 8)}.${String(at.getMilliseconds()).padStart(3, '0')}`
}

function fieldsText(fields: object): string {
  return Object.entries(fields)
    .map(([name, value]) => ` ${name}=${valueText(value)}`)
    .join('')
}

/** A single word as it is, everything else as JSON. */
function valueText(value: unknown): string {
  const plain = typeof value === 'string' && /^[^\s"=]+$/.test(value)
  return printable(plain ? value : JSON.stringify(value))
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is the point
const CONTROLS = /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/**
 * Text from a log or a file, without characters that move the cursor, change colours or reverse the direction of text.
 */
export function printable(text: string): string {
  return text.replace(CONTROLS, '\ufffd')
}
