/** Reads the gateway's own log as traffic: each request once, however many records it has. */
import { type Dropped, decisionReader } from '../log/decision-record.js'
import { type Format, trafficOf } from './traffic.js'

/** What the records of a log leave out. */
export interface Sampling {
  readonly dropped: Dropped
  /** Records of requests that were admitted. */
  admitted: number
  /** The smallest share of them that was logged. */
  sample: number
}

/** Ids to remember: the records of one request are adjacent, unless the lines of several gateways are mixed. */
const REMEMBERED = 1000

export function decisionRecords(sampling: Sampling): Format {
  const read = decisionReader(sampling.dropped)
  const ids = new Set<string>()
  return {
    name: 'records',
    title: 'decision records',
    facts: new Set(['project', 'client', 'ja3', 'ja4', 'auth', 'duration']),
    read(line) {
      const record = read(line)
      if (record === undefined || 'trouble' in record) return record
      if (record.decision === 'allow') {
        sampling.admitted += 1
        sampling.sample = Math.min(sampling.sample, record.sample)
      }
      if (ids.has(record.id)) return undefined
      ids.add(record.id)
      if (ids.size > REMEMBERED) ids.delete(ids.values().next().value as string)
      return trafficOf(record)
    },
  }
}
