/** A policy file with the buckets that were found, and suggested limits as comments. */
import { basename } from 'node:path'
import { printable } from '../text.js'

/** Words that YAML would not read as text. */
const NO_TEXT = /^(null|true|false)$/
const READS = /^(GET|HEAD|OPTIONS) /

export type Buckets = ReadonlyMap<string, readonly string[]>

/** Suggested limits by bucket: nothing is known of the traffic, except that writes cost more than reads. */
export function suggestedLimits(buckets: Buckets): Record<string, { burst: number; sustained: number }> {
  return Object.fromEntries(
    [...buckets].map(([name, patterns]) => {
      const isRead = patterns.every(pattern => READS.test(pattern))
      return [name, isRead ? { burst: 20, sustained: 600 } : { burst: 5, sustained: 150 }]
    }),
  )
}

/** Patterns are quoted, so that YAML does not interpret them. */
export function policyText(buckets: Buckets, files: readonly string[]): string {
  const head = `# From ${printable(files.map(file => basename(file)).join(', '))}.\nversion: 1\nkind: project-limits\n`
  if (buckets.size === 0) return `${head}buckets: {}\n`
  const sections = [...buckets].map(
    ([name, patterns]) =>
      `  ${keyText(name)}:\n${patterns.map(pattern => `    - ${JSON.stringify(pattern)}\n`).join('')}`,
  )
  const quotas = Object.entries(suggestedLimits(buckets)).map(
    ([name, { burst, sustained }]) =>
      `#       ${keyText(name)}: { burst: ${burst}, sustained: ${sustained} }\n`,
  )
  return `${head}buckets:\n${sections.join('')}
# Suggested limits, for every plan and environment: a place to begin, not measured. Remove the "#" and choose your numbers.
# What falls into no bucket is not limited, unless a bucket has "*".
# limits:
#   - for: [{}]
#     quotas:
${quotas.join('')}`
}

const keyText = (name: string): string => (NO_TEXT.test(name) ? JSON.stringify(name) : name)
