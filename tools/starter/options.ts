/** Reads the options of a starter configuration: the operator's own service, and limits such as `100/m` or `500/10m`. */
import { connect } from 'node:net'
import { reaches } from '../../config/checks/listen-host.js'
import { isHttpOrigin, originMeantBy } from '../../config/formats.js'
import { listed, nearest } from '../../config/problem.js'
import { durationWithin } from '../../config/schema/duration.js'
import { perText } from '../../gateway/forward/units.js'
import { Unusable } from '../command.js'
import { grouped, printable } from '../text.js'

/** The address in the form used in configurations. @throws {Unusable} with what was probably meant */
export function readUpstream(text: string): string {
  if (isHttpOrigin(text)) return new URL(text).origin
  if (/\/\/[^/]*@/.test(text)) {
    throw new Unusable(
      '--upstream takes no user and password: clients send their own, and the service sees them.',
    )
  }
  const meant = originMeantBy(text)
  const help = meant === undefined ? 'Write it like http://127.0.0.1:3000.' : `Did you mean ${meant}?`
  throw new Unusable(
    `--upstream "${printable(text)}" is not an http:// or https:// address of a host, without a path. ${help}`,
  )
}

const PATIENCE_MS = 1000

/** Whether something accepts connections at the address, within a second. */
export function answers(origin: string): Promise<boolean> {
  const { host, port } = addressOf(origin)
  return new Promise(resolve => {
    const socket = connect(port, host)
    const end = (isThere: boolean) => {
      socket.destroy()
      resolve(isThere)
    }
    socket.setTimeout(PATIENCE_MS, () => end(false))
    socket.on('connect', () => end(true)).on('error', () => end(false))
  })
}

interface Address {
  readonly host: string
  readonly port: number
}

/** Whether requests to an upstream would come to this listener of the gateway. */
export function leadsTo(upstream: string, own: Address): boolean {
  const { host, port } = addressOf(upstream)
  // Port 0 stands for any free one.
  return port !== 0 && port === own.port && reaches(host, own.host)
}

/** Where an http or https URL leads. */
export function addressOf(url: string): Address {
  const { hostname, port, protocol } = new URL(url)
  const standard = protocol === 'https:' ? 443 : 80
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? standard : Number(port) }
}

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
