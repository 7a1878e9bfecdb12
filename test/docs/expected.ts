/** Whether a command printed what a page shows, apart from what differs from run to run. */

/**
 * What may differ, as a page writes it and as it is printed. `…` stands for any text within its line, and alone on a
 * line for any lines; after eight characters of an id or a secret it stands for the rest of a different one.
 */
const VARIES = [
  /(?<=["/:])[\w-]{8}…/,
  /^…\n/,
  /…/,
  /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/,
  /\d{4}-\d\d-\d\dT[\d:.]+Z/,
  /\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT/,
  /\d{4}-\d\d-\d\d \d\d:\d\d(?= )/,
  /\b\d\d:\d\d:\d\d\b/,
  /sha256:[0-9a-f]{16}/,
  /(?<=;t=)\d+/,
  /(?<=Retry-After: )\d+/,
  /(?<="retry_after":)\d+/,
  /(?<=in )(?:\d+ (?:min|s) ?)+/,
] as const

const STANDS_FOR = ['[\\w-]+', '(?:.*\\n)*?', '.*?', ...VARIES.slice(3).map(({ source }) => source)]

const varying = new RegExp(VARIES.map(({ source }) => `(${source})`).join('|'), 'gm')

/** A pattern for everything that `shown` stands for; with `numbersVary` any number matches any other. */
export function patternOf(shown: string, numbersVary = false): RegExp {
  let pattern = ''
  let at = 0
  const literally = (text: string) => {
    const escaped = text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    return numbersVary ? escaped.replace(/ *\d[\d,]*(?:\\\.\d+)?/g, ' *\\d[\\d,.]*') : escaped
  }
  for (const found of shown.matchAll(varying)) {
    pattern += literally(shown.slice(at, found.index)) + STANDS_FOR[found.slice(1).findIndex(Boolean)]
    at = found.index + found[0].length
  }
  return new RegExp(`^${pattern}${literally(shown.slice(at))}$`)
}
