/** What one gateway process reports about itself. */
import { existsSync, readFileSync } from 'node:fs'

const WARNING = /\(node:\d+\) (?:\[\w+\] )?\w*Warning.*/g
/** An error in a gateway's log: the level as pino's number or as its name. */
const FAULT = /^\{"level":("error"|"fatal"|[56]0).*$/gm

/** Warnings from Node: too many listeners indicate a leak. */
export function warningsOf({ out }) {
  return out().match(WARNING) ?? []
}

/** What must not be logged while only Redis or an upstream fails: warnings from Node, and errors. */
export function complaintsOf(gateway) {
  return [...warningsOf(gateway), ...(gateway.out().match(FAULT) ?? [])]
}

/**
 * How long this process and the gateway that waited longest have waited for a core so far, in milliseconds. 0 on
 * systems other than Linux, which do not report it.
 */
export function waitedMs(gateways) {
  return waitedBy(process) + Math.max(...gateways.map(waitedBy))
}

function waitedBy({ pid }) {
  const file = `/proc/${pid}/schedstat`
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split(' ')[1]) / 1e6 : 0
}
