/** Policies that several tests need. */
import { projectFile } from './root.js'

/** The policies that Sluice ships with, by file name. */
export const shipped = {
  'project-limits.yaml': projectFile('config', 'policies', 'project-limits.yaml'),
  'in-flight.yaml': projectFile('config', 'policies', 'in-flight.yaml'),
}

/**
 * One bucket, `all`, for every request of every plan and environment. The minute quota is not refilled within a test.
 */
export const oneBucket = (sustained: number, { burst = sustained, lease = false } = {}): string => `version: 1
kind: project-limits
buckets: { all: ["*"] }
limits: [{ for: [{}], quotas: { all: { burst: ${burst}, sustained: ${sustained}, lease: ${lease} } } }]
`
