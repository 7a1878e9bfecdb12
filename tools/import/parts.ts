/** What the readers of other gateways' files hand over. */
import type { Path } from '../../config/problem.js'
import type { KeyPart } from '../../config/words.js'
import type { Position } from '../../config/yaml.js'

/** A position in the file that is read. */
export interface Origin extends Position {
  readonly path?: Path
  /** Where it is not the file that the command names. */
  readonly file?: string | undefined
}

/** What volumetric and in-flight rules have in common. */
export interface RuleParts {
  /** Turned into a unique name. */
  readonly name: string
  readonly match: readonly string[]
  readonly key: readonly KeyPart[]
  /** Hosts whose requests the rule looks at; none: all. */
  readonly hosts?: readonly string[]
  /** Plans that the rule looks at; none: all. */
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
