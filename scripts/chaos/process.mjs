/** What one gateway's process tells about itself. */
import { existsSync, readFileSync } from 'node:fs'

const WARNING = /\(node:\d+\) .*Warning.*/g
/** Of what a gateway logs: pino's level, or its name. */
const FAULT = /^\{"level":("error"|"fatal"|[56]0).*$/gm

/** What Node warns of: too many listeners are a leak. */
export function warningsOf({ out }) {
  return out().match(WARNING) ?? []
}

/** What must not be said while nothing but Redis or an upstream fails: warnings of Node's, and errors. */
export function complaintsOf(gateway) {
  return [...warningsOf(gateway), ...(gateway.out().match(FAULT) ?? [])]
}

/**
 * For how long these and this process have waited for a core so far, in milliseconds: of the gateways the one that waited
 * longest. 0 where the system does not tell, as only Linux does.
 */
export function waitedMs(gateways) {
  return waitedBy(process) + Math.max(...gateways.map(waitedBy))
}

function waitedBy({ pid }) {
  const file = `/proc/${pid}/schedstat`
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split(' ')[1]) / 1e6 : 0
}
