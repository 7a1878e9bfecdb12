/** Input and output of the checks of a whole configuration. */

import { listed, nearest, type Path, type Place, type UnplacedProblem } from './problem.js'
import type { Gateway } from './schema/gateway.js'
import type { ProjectEntry } from './schema/projects.js'
import type { AccessPolicy, PolicyFile } from './types.js'
import type { PlanWords } from './words/words.js'

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

/** `policies/a.yaml:7`. */
export const placeText = ({ file, line }: Place): string => `${file}:${line}`

/** At most this many names are compared with a misspelt one or listed. */
const MOST_NAMES = 1000

/** The sentence about a name that does not exist, with what was probably meant. */
export function unknownName(what: string, name: string, known: ReadonlySet<string>): string {
  const names = [...known].slice(0, MOST_NAMES)
  const meant = nearest(name, names)
  if (meant !== undefined) return `Unknown ${what} "${name}". Did you mean "${meant}"?`
  const others = known.size > LISTED ? ` There are ${known.size}.` : ` Must be ${listed(names)}.`
  return `Unknown ${what} "${name}".${known.size === 0 ? ' None is defined.' : others}`
}

const LISTED = 100
