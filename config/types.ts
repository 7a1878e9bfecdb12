/** The loader's result. */

import { formatPath, type Path, type Place, type Problem } from './problem.js'
import type { ACCESS, AccessDocument } from './schema/access.js'
import type { Gateway } from './schema/gateway.js'
import type { ProjectLimitsDocument, RuleFile } from './schema/policy.js'
import type { ProjectEntry } from './schema/projects.js'
import { PROJECT_LIMITS } from './words/bucket.js'
import type { PlanWords } from './words/words.js'

/** A policy file of kind project-limits. */
export interface ProjectLimitsPolicy {
  readonly file: string
  readonly kind: typeof PROJECT_LIMITS
  readonly document: ProjectLimitsDocument
}
/** A policy file whose rules are read by the limit plugin `kind`. */
export interface RulesPolicy {
  readonly file: string
  readonly kind: string
  readonly document: RuleFile
}
export type PolicyFile = ProjectLimitsPolicy | RulesPolicy

/** A policy file of kind access. */
export interface AccessPolicy {
  readonly file: string
  readonly kind: typeof ACCESS
  readonly document: AccessDocument
}

/** Everything the files contain, validated. Their paths are built on the path that was given. */
export interface Config {
  readonly gatewayFile: string
  readonly projectsFile: string
  readonly gateway: Gateway
  readonly projects: readonly ProjectEntry[]
  readonly planWords: PlanWords
  /** In the order of their file names. */
  readonly policies: readonly PolicyFile[]
  /** In the order of their file names; their entries count nothing and are evaluated before any rule. */
  readonly access: readonly AccessPolicy[]
  /** Where the value at `path`, or else its nearest ancestor, is written. */
  locate(file: string, path: Path): Place
}

export function isProjectLimits(policy: PolicyFile): policy is ProjectLimitsPolicy {
  return policy.kind === PROJECT_LIMITS
}

/** A problem found after loading, for example by the matcher, at the place of its value. */
export function problemAt(
  config: Pick<Config, 'locate'>,
  file: string,
  path: Path,
  message: string,
): Problem {
  return { ...config.locate(file, path), path: formatPath(path), message }
}
