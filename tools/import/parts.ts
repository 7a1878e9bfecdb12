/** What the importers of other gateways' files pass on. */
import type { Path } from '../../config/problem.js'
import type { KeyPart } from '../../config/words.js'
import type { Position } from '../../config/yaml.js'

/** A position in an imported file. */
export interface Origin extends Position {
  readonly path?: Path
  /** Set when it is not the file given to the command. */
  readonly file?: string | undefined
}

/** The parts that volumetric and in-flight rules have in common. */
export interface RuleParts {
  /** Turned into a unique name. */
  readonly name: string
  readonly match: readonly string[]
  readonly key: readonly KeyPart[]
  /** Hosts to whose requests the rule applies; none: all. */
  readonly hosts?: readonly string[]
  /** Plans to which the rule applies; none: all. */
  readonly plans?: readonly string[]
  readonly networks?: readonly string[]
  readonly reportOnly?: boolean
  readonly onStoreError?: 'closed'
}

export interface ProjectParts {
  readonly id: string
  readonly plan?: string
  readonly hosts?: readonly string[]
  readonly apiKeyHashes?: readonly string[]
}
