/** Reads limits from the command line: `100/m`, `10/s`, `500/10m`. */

import { listed, nearest } from '../../config/problem.js'
import { durationWithin } from '../../config/schema/duration.js'
import { perText } from '../../gateway/forward/units.js'
import { Unusable } from '../command.js'
import { grouped, printable } from '../text.js'

export interface StarterLimit {
  /** Name of the window, as used in responses. */
  readonly name: string
  readonly requests: number
  /** A duration text such as `1m`. */
  readonly per: string
  /** The same in milliseconds. */
  readonly ms: number
}

const UNITS: Readonly<Record<string, string>> = {
  ...{ s: 's', sec: 's', second: 's', m: 'm', min: 'm', minute: 'm' },
  ...{ h: 'h', hour: 'h', d: 'd', day: 'd' },
}
const NAMES: Readonly<Record<string, string>> = { '1s': 'second', '1m': 'minute', '1h': 'hour', '1d': 'day' }
const BOUNDS = { unit: '1s', maximum: '31d' } as const
const MOST_REQUESTS = 1_000_000_000
/** The largest number of windows in a quota. */
const MOST = 8

/** @throws {Unusable} when one is invalid, or two are for the same length of time */
export function readLimits(written: readonly string[]): StarterLimit[] {
  if (written.length > MOST) throw new Unusable(`--limit may be given ${MOST} times at most.`)
  const limits = written.map(readLimit)
  for (const [i, limit] of limits.entries()) {
    const same = limits.findIndex(({ ms }) => ms === limit.ms)
    if (same === i) continue
    throw new Unusable(
      `--limit ${written[same]} and --limit ${written[i]} are both ${perText(limit.ms)}. Keep one.`,
    )
  }
  return limits
}

/** `100 requests per minute and 1,000 requests per hour from each client address`. */
export function limitsText(limits: readonly StarterLimit[]): string {
  const each = limits.map(({ requests, ms }) => {
    return `${grouped(requests)} request${requests === 1 ? '' : 's'} ${perText(ms)}`
  })
  return `${listed(each, 'and')} from each client address`
}

function readLimit(text: string): StarterLimit {
  const [, number, count = '', word] = /^([0-9]+)\/([0-9]*)([a-z]+)$/i.exec(text) ?? []
  if (number === undefined || word === undefined) {
    const help = 'Write requests and a length of time, such as 100/m, 10/s, 1000/h or 500/10m.'
    throw new Unusable(`--limit "${printable(text)}" is not a limit. ${help}`)
  }
  const unit = unitOf(text, word)
  const per = `${count === '' ? '1' : Number(count)}${unit}`
  const ms = durationWithin(per, BOUNDS)
  const requests = Number(number)
  if (requests < 1 || requests > MOST_REQUESTS || ms === undefined) {
    throw new Unusable(
      `--limit "${printable(text)}" is out of range: from 1 to ${grouped(MOST_REQUESTS)} requests in 1 second to 31 days.`,
    )
  }
  return { name: NAMES[per] ?? `per-${per}`, requests, per, ms }
}

function unitOf(text: string, word: string): string {
  const small = word.toLowerCase()
  // "ms" is no plural: it would make 500 milliseconds 500 minutes.
  const unit = UNITS[small] ?? UNITS[small.replace(/(?<=..)s$/, '')]
  if (unit !== undefined) return unit
  const meant = nearest(small, Object.keys(UNITS))
  const help = meant === undefined || word.length < 3 ? '' : ` Did you mean ${UNITS[meant]} (${meant})?`
  throw new Unusable(
    `--limit "${printable(text)}": "${printable(word)}" is not a unit of time. Write s, m, h or d, such as 100/m.${help}`,
  )
}
