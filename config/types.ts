/** The loader's result, and what the checks of a whole configuration read and find. */
import { formatPath, type Path, type Place, type Problem, type UnplacedProblem } from './problem.js'
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

/** The documents as read; undefined for a document that has problems of its own. */
export interface Readable {
  readonly gatewayFile: string
  readonly projectsFile: string
  readonly gateway: Gateway | undefined
  readonly projects: readonly ProjectEntry[] | undefined
  readonly planWords: PlanWords | undefined
  /** The data of well-formed files, by file, whether or not it is valid. */
  readonly written: ReadonlyMap<string, unknown>
  readonly policies: readonly PolicyFile[]
  readonly access: readonly AccessPolicy[]
  /** False while a file that may define buckets is not valid. */
  readonly bucketsKnown: boolean
  locate(file: string, path: Path): Place
  /** The environment variables that a value came from: messages must not quote such a value. */
  variablesOf(file: string, path: Path): readonly string[]
}

export interface FileFault extends UnplacedProblem {
  readonly file: string
}
