const LONGEST_LINE = 1000

/** Frequent mistakes, recognized by the text of the line, and how to correct them. */
const MISTAKES: readonly (readonly [RegExp, (line: number, found: string) => string])[] = [
  [/^ *\t/, line => `Line ${line} begins with a tab. Indent with spaces.`],
  [/[{[,:]\s*(?<found>\$\{[^{}]*\})/, (_line, found) => `Inside { } and [ ] write it in quotes: "${found}".`],
  [/[[,:]\s*\*(?=[\s,\]}]|$)/, () => 'An asterisk needs quotes: "*".'],
]

/** The first of these mistakes that explains a syntax error at one of `offsets`, with the offset of its line. */
export function mistakeAmong(
  offsets: readonly number[],
  text: string,
): { readonly offset: number; readonly message: string } | undefined {
  let [start, end] = [0, -1]
  for (const offset of offsets) {
    // A line may hold a hundred thousand errors, and is read for the first one.
    if (offset >= start && offset <= end) continue
    start = text.lastIndexOf('\n', offset - 1) + 1
    end = text.indexOf('\n', offset)
    if (end === -1) end = text.length
    const line = text.slice(start, start + LONGEST_LINE).split('\n', 1)[0] ?? ''
    for (const [mistake, sentence] of MISTAKES) {
      const found = mistake.exec(line)
      if (found === null) continue
      const number = text.slice(0, start).split('\n').length
      return { offset: start, message: sentence(number, found.groups?.found ?? '') }
    }
  }
  return undefined
}
