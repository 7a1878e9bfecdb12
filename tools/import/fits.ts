/** Checks an entry as the loader would, before it is written: `sluice check` must accept every file that is written. */
import { accessSchema } from '../../config/schema/access.js'
import { projectLimitsSchema, ruleFileSchema } from '../../config/schema/policy.js'
import { projectsSchema } from '../../config/schema/projects.js'
import { createValidator, type Validator } from '../../config/validate.js'
import { inFlight } from '../../gateway/decide/in-flight.js'
import { volumetric } from '../../gateway/decide/volumetric.js'
import { apiKey } from '../../gateway/identify/api-key.js'

const SCHEMAS = {
  volumetric: () => ruleFileSchema('volumetric', volumetric.schema),
  'in-flight': () => ruleFileSchema('in-flight', inFlight.schema),
  access: () => accessSchema,
  'project-limits': () => projectLimitsSchema,
  projects: () => projectsSchema,
  'api-key': () => apiKey.schema,
}

export type FileKind = keyof typeof SCHEMAS

const validators = new Map<FileKind, Validator>()

/** The first fault of a document of that kind, as a sentence; undefined when it has none. */
export function faultIn(kind: FileKind, document: object): string | undefined {
  const validate = validators.get(kind) ?? createValidator(SCHEMAS[kind]())
  validators.set(kind, validate)
  // A copy, because validation fills in defaults.
  return validate(structuredClone(document), () => [])[0]?.message
}
