/** Reads tap's output as it comes: one line per test file, failures and skips in full, and the runner's counts. */

const FILE = /^(ok|not ok) \d+ - (.*?)(?: # time=([\d.]+)ms)?$/
const POINT = /^\s+(ok|not ok) \d+ - (.*)$/
const COUNTS = /^# \{ (total: .*) \}$/
/** A point with a time is a subtest: it only repeats that something inside it failed. */
const SUBTEST = / # time=[\d.]+ms$/

/** @param {(line: string) => void} print */
export function tapView(print) {
  /** @type {{ [name: string]: number, pass: number, fail: number, skip: number, todo: number }} */
  const counts = { total: 0, pass: 0, fail: 0, skip: 0, todo: 0 }
  let counted = false
  /** @type {string[]} */
  let details = []
  let inFailure = false

  return {
    /** The runner's own numbers of assertions, or undefined when it ended without giving them. */
    get counts() {
      return counted ? counts : undefined
    },
    read(/** @type {string} */ line) {
      const file = FILE.exec(line)
      const point = POINT.exec(line)
      if (file) {
        const [, result, name, time] = file
        const took = time ? ` (${Math.round(Number(time))} ms)` : ''
        print(`${result === 'ok' ? 'ok    ' : 'FAILED'} ${name}${took}`)
        for (const detail of details) print(detail)
        details = []
        inFailure = false
      } else if (point) {
        const [, result, title = ''] = point
        inFailure = result === 'not ok' && !SUBTEST.test(title)
        if (result === 'not ok' || / # (SKIP|TODO)\b/.test(title)) details.push(line)
      } else if (COUNTS.test(line)) {
        for (const [, name = '', number] of line.matchAll(/(?<!\w)(\w+): (\d+)/g))
          counts[name] = Number(number)
        counted = true
      } else if (line.startsWith('Bail out!')) {
        print(line)
      } else if (inFailure) {
        // The YAML block of a failed assertion, up to its end marker.
        details.push(line)
        inFailure = line.trim() !== '...'
      }
    },
  }
}
