/** A row of the page: what was measured, with the promise beside it. */
import { existsSync, readFileSync } from 'node:fs'
import type { GatewayProcess } from '../../test/helpers/gateway-process.js'
import { say } from '../lib/run.mjs'

export interface Cell {
  readonly text: string
  readonly promise?: string
  /** Whether it is as promised. */
  readonly holds: boolean
}

export interface Row {
  readonly name: string
  readonly cells: readonly Cell[]
  /** Whether the machine was too busy for a verdict. */
  readonly isUnknown?: boolean
}

export interface Section {
  readonly title: string
  readonly note: string
  readonly columns: readonly string[]
  readonly rows: readonly Row[]
}

export interface Chosen {
  readonly short: boolean
  /** Whether a cell is run, such as `cluster / reset`. */
  wants(cell: string): boolean
}

/** Measures the faults of one component that are chosen. */
export type Part = (chosen: Chosen) => Promise<Section[]>

export const cell = (text: string | number, promise: string | number, holds: boolean): Cell => ({
  text: String(text),
  promise: String(promise),
  holds,
})

/** A time in milliseconds, up to `lateMs` of which may have been spent waiting for a core. */
export function timeCell(ms: number, withinMs: number, lateMs: number): Cell {
  const late = ms > withinMs ? `, plus ${Math.round(lateMs)} ms without a core` : ''
  return cell(`${Math.round(ms)} ms`, `${withinMs} ms${late}`, ms - lateMs <= withinMs)
}

/** After this long without a core, the result may reflect the machine. */
const LATE_MS = 1_000
const TRIES = 3

export interface Measured {
  readonly cells: readonly Cell[]
  /** How long the run waited for a core. */
  readonly lateMs: number
  /** To report besides the cells. */
  readonly more?: string
}

/**
 * Measures a fault and reports the verdict. A broken promise is measured anew when the machine had no core for the run;
 * when the waits add up to more than the run itself, the verdict is unknown.
 */
export async function verdictRow(part: string, name: string, measure: () => Promise<Measured>): Promise<Row> {
  for (let tries = 1; ; tries += 1) {
    const begun = performance.now()
    const { cells, lateMs, more = '' } = await measure()
    const holds = cells.every(cell => cell.holds)
    const isAgain = !holds && lateMs > LATE_MS && tries < TRIES
    const isUnknown = !holds && !isAgain && lateMs > performance.now() - begun
    const verdict = holds ? 'kept   ' : isAgain ? 'again  ' : isUnknown ? 'unknown' : 'BROKEN '
    const late = `${Math.round(lateMs)} ms waiting for a core`
    say(`${verdict} ${part} / ${name}: ${cells.map(({ text }) => text).join('; ')} (${more}${late})`)
    if (!isAgain) return { name, cells, isUnknown }
  }
}

const WARNING = /\(node:\d+\) (?:\[\w+\] )?\w*Warning.*/g
/** An error in a gateway's log: the level as pino's number or as its name. */
const FAULT = /^\{"level":("error"|"fatal"|[56]0).*$/gm

/** Warnings from Node: too many listeners indicate a leak. */
export const warningsOf = ({ out }: Pick<GatewayProcess, 'out'>): string[] => out().match(WARNING) ?? []

/** What must not be logged while only Redis or an upstream fails: warnings from Node, and errors. */
export function complaintsOf(gateway: GatewayProcess): string[] {
  return [...warningsOf(gateway), ...(gateway.out().match(FAULT) ?? [])]
}

/**
 * How long this process and the gateway that waited longest have waited for a core so far, in milliseconds. 0 on
 * systems other than Linux, which do not report it.
 */
export function waitedMs(gateways: readonly GatewayProcess[]): number {
  return waitedBy(process) + Math.max(...gateways.map(waitedBy))
}

function waitedBy({ pid }: { readonly pid: number }): number {
  const file = `/proc/${pid}/schedstat`
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split(' ')[1]) / 1e6 : 0
}
