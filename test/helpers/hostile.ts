/** Hostile texts, and what reading one may cost. */
import { cpuMs } from './cpu-time.js'

/** What the syntax of most texts is made of, alone and in pairs that make a reader begin anew. */
const UNITS = [
  ...[' ', '\t', '\n', '\r\n', '\0', 'a', '0', 'é', '😀'],
  ...[
    '"',
    "'",
    '\\',
    '`',
    ',',
    ';',
    ':',
    '.',
    '-',
    '_',
    '/',
    '?',
    '#',
    '&',
    '=',
    '+',
    '*',
    '@',
    '!',
    '%',
    '$',
  ],
  ...['(', ')', '[', ']', '{', '}', '<', '>', '|', '^', '~'],
  ...[
    'a ',
    'a,',
    'a;',
    'a&',
    'a=',
    'a=;',
    ', ',
    '; ',
    ' ;',
    '""',
    '" ',
    '\\"',
    '%41',
    '%c3%a9',
    '..',
    '/..',
    '//',
    '${',
  ],
]

interface Shape {
  readonly starts?: readonly string[]
  /** By default none, and one that makes the whole invalid. */
  readonly ends?: readonly string[]
  /** What is repeated, if not everything that is known to be hostile. */
  readonly units?: readonly string[]
  /** What is repeated as well. */
  readonly more?: readonly string[]
}

/** Texts of up to `size` bytes: one unit again and again between each beginning and each end. */
export function hostileTexts(
  size: number,
  { starts = [''], ends = ['', '\u0001'], units = UNITS, more = [] }: Shape = {},
): string[] {
  return starts.flatMap(start =>
    ends.flatMap(end =>
      [...units, ...more].map(unit => {
        const room = size - Buffer.byteLength(start + end)
        return `${start}${unit.repeat(Math.max(0, Math.floor(room / Buffer.byteLength(unit))))}${end}`
      }),
    ),
  )
}

/** How often an input is read before it counts as slow: a busy machine or the compiler may delay one try. */
const TRIES = 8

/**
 * The inputs that `read` needs more than `ms` of CPU time for. Errors are answers: readers refuse much of what is
 * hostile. A megabyte may honestly take longer than 10 ms; a quadratic reader of it takes minutes. Half the size is no
 * measure for these: collecting garbage makes linear readers take four times as long for twice the text.
 */
export async function slowInputs<Input>(
  inputs: readonly Input[],
  read: (input: Input) => unknown,
  ms = 10,
): Promise<string[]> {
  const slow: string[] = []
  for (const input of inputs) {
    const took = await leastMs(() => read(input), ms)
    if (took > ms) slow.push(`${shown(input)}: ${took.toFixed(1)} ms`)
  }
  return slow
}

/** The least CPU time of several tries; the first one below `enough` ends them. */
async function leastMs(work: () => unknown, enough: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let tries = 0; tries < TRIES && least > enough; tries += 1) {
    const took = await cpuMs(async () => {
      try {
        await work()
      } catch {}
    })
    least = Math.min(least, took)
    // No further try of a reader that takes this long will be fast.
    if (least > 100 * enough) break
  }
  return least
}

/** The ends of an input, because its middle repeats. */
function shown(input: unknown): string {
  const text = typeof input === 'string' ? input : JSON.stringify(input).slice(0, 1000)
  return JSON.stringify(text.length <= 80 ? text : `${text.slice(0, 60)}…${text.slice(-10)}`)
}
