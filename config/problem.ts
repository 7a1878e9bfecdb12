/** Problems of a configuration: where they are, sentences for the operator, and names that were probably meant. */

/** Where a value stands in a document: keys and list positions from the root. */
export type Path = readonly (string | number)[]

/** A place in a file; lines and columns count from 1. */
export interface Place {
  readonly file: string
  readonly line: number
  readonly col: number
}

export interface Problem extends Place {
  /** Dotted path of the value, such as `routes[0].upstream`; '' for the whole file. */
  readonly path: string
  readonly message: string
}

/** A problem whose file and position are not looked up yet. */
export interface UnplacedProblem {
  readonly path: Path
  readonly message: string
  /** True when the key itself is wrong, not its value. */
  readonly atKey?: boolean
}

/** `file:line:col path: sentence`. */
export function formatProblem({ file, line, col, path, message }: Problem): string {
  return `${file}:${line}:${col}${path && ` ${path}`}: ${message}`
}

/** `['buckets', 'a.b', 0]` → `buckets["a.b"][0]`. */
export function formatPath(path: Path): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else if (/^[\w-]+$/.test(part)) text += text === '' ? part : `.${part}`
    else text += `[${JSON.stringify(part)}]`
  }
  return text
}

/** `a, b or c`. */
export function listed(words: readonly string[], last: 'or' | 'and' = 'or'): string {
  if (words.length < 2) return words.join('')
  return `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`
}

/** The candidate that was most likely meant, or undefined when none is close. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const allowed = Math.max(1, Math.floor(word.length / 3))
  let best: string | undefined
  let least = allowed + 1
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= least) continue
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase(), least)
    if (distance < least) [best, least] = [candidate, distance]
  }
  return best
}

/**
 * Single-letter edits between two words; swapping two neighbours counts as one edit (restricted Damerau–Levenshtein).
 * Stops early and returns `most` once there are at least that many.
 */
function editDistance(a: string, b: string, most: number): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let least = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + (same ? 0 : 1))
      const exchanged = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (exchanged) least = Math.min(least, at(beforeLast, j - 2) + 1)
      row.push(least)
    }
    if (Math.min(...last) >= most && Math.min(...row) >= most) return most
    beforeLast = last
    last = row
  }
  return at(last, b.length)
}

const at = (row: readonly number[], index: number): number => row[index] ?? 0

/** The problems as `file:line:col path: sentence`, one a line, and their number. */
export function listProblems(problems: readonly Problem[]): string {
  return [...problems.map(formatProblem), `${countProblems(problems.length)} in the configuration.`].join(
    '\n',
  )
}

/** `1 problem`, `2 problems`. */
export function countProblems(count: number): string {
  return count === 1 ? '1 problem' : `${count} problems`
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
