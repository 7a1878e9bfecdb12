/** One negotiated limit by itself, for what is set at run time: the schema and the checks of `overrides` in projects.yaml. */
import { formatPath } from './problem.js'
import { OverrideSchema, windowFaults } from './schema/quota.js'
import { createValidator, type Validator } from './validate.js'
import type { QuotaOverride } from './words/quota.js'

let validator: Validator | undefined

/** Reads a limit as it is written in projects.yaml; `fault` says what is wrong with it, a sentence for each place. */
export function readNegotiatedLimit(
  written: unknown,
): { readonly quota: QuotaOverride } | { readonly fault: string } {
  validator ??= createValidator(OverrideSchema)
  // The validator replaces durations by milliseconds.
  const quota = structuredClone(written) as QuotaOverride
  const faults = validator(quota, () => [])
  const all = faults.length > 0 ? faults : windowFaults(quota, [])
  if (all.length === 0) return { quota }
  const sentences = all.map(({ path, message }) =>
    path.length === 0 ? message : `${formatPath(path)}: ${message}`,
  )
  return { fault: sentences.join(' ') }
}
