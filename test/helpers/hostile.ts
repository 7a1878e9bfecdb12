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

/**
 * Texts of `size` bytes or fewer: one unit again and again behind each beginning, with and without an end that makes
 * the whole invalid.
 */
export function hostileTexts(
  size: number,
  {
    starts = [''],
    ends = ['', '\u0001'],
    units = [],
  }: { starts?: string[]; ends?: string[]; units?: string[] } = {},
): string[] {
  return starts.flatMap(start =>
    ends.flatMap(end =>
      [...UNITS, ...units].map(unit => {
        const room = size - Buffer.byteLength(start + end)
        return `${start}${unit.repeat(Math.max(0, Math.floor(room / Buffer.byteLength(unit))))}${end}`
      }),
    ),
  )
}

/** How often an input is read before it counts as slow: a busy machine or the compiler may delay one try. */
const TRIES = 8

/**
 * The inputs that `read` needs more than `ms` of CPU time for, each with the least time of several tries. Errors are
 * answers: readers refuse much of what is hostile.
 */
export async function slowInputs<Input>(
  inputs: readonly Input[],
  read: (input: Input) => unknown,
  ms = 10,
): Promise<string[]> {
  const slow: string[] = []
  for (const input of inputs) {
    let least = Number.POSITIVE_INFINITY
    for (let tries = 0; tries < TRIES && least > ms; tries += 1) {
      least = Math.min(
        least,
        await cpuMs(async () => {
          try {
            await read(input)
          } catch {}
        }),
      )
      // No try of a reader that takes this long will be fast.
      if (least > 100 * ms) break
    }
    if (least > ms) slow.push(`${shown(input)}: ${least.toFixed(1)} ms`)
  }
  return slow
}

/** The ends of an input, because its middle repeats. */
function shown(input: unknown): string {
  const text = typeof input === 'string' ? input : JSON.stringify(input)
  return text.length <= 80 ? text : JSON.stringify(`${text.slice(0, 60)}…${text.slice(-10)}`)
}
