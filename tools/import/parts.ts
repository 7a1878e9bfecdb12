/** What the importers of other gateways' files pass on. */
import type { Path } from '../../config/problem.js'
import type { KeyPart } from '../../config/words/words.js'
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
  /** Projects to whose requests the rule applies; none: all. */
  readonly projects?: readonly string[]
  /** Plans to which the rule applies; none: all. */
  readonly plans?: readonly string[]
  readonly networks?: readonly string[]
  readonly reportOnly?: boolean
  readonly onStoreError?: 'closed'
  /** What becomes of requests without a header of the key; absent: they are not counted. */
  readonly missing?: 'shared'
}

export interface ProjectParts {
  readonly id: string
  plan?: string
  readonly hosts?: readonly string[]
  readonly apiKeyHashes?: readonly string[]
}

/** Limits and timeouts of an upstream; times in milliseconds. */
export interface UpstreamSettings {
  readonly maxBody?: number
  readonly timeouts?: { readonly connect?: number; readonly head?: number; readonly idle?: number }
}
