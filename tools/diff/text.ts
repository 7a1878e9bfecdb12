/** Prints a difference as text. */
import type { PolicyDifference } from '../../gateway/explain/difference/compare.js'
import { type ChangeSentence, sentencesOf } from '../../gateway/explain/difference/sentences.js'
import type { Io } from '../io.js'
import { printable, wrap } from '../text.js'

const MARKS = { added: '+', removed: '-', changed: '~' } as const
const STYLES = { added: 'green', removed: 'red', changed: 'yellow' } as const

export function writeDifference(difference: PolicyDifference, io: Io): void {
  let above: string | undefined
  for (const one of sentencesOf(difference)) {
    if (one.heading !== above) io.out(`${io.style('bold', wrap(one.heading, io.columns))}\n`)
    above = one.heading
    line(one, io)
  }
}

function line({ change, sentence }: ChangeSentence, io: Io): void {
  const [first, ...rest] = wrap(printable(sentence), io.columns - 6).split('\n')
  io.out(
    `  ${io.style(STYLES[change], MARKS[change])} ${first}\n${rest.map(one => `      ${one}\n`).join('')}`,
  )
}
