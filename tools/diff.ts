/** `sluice diff`: what a changed configuration would change for its clients. */

import { compare, isSame, type PolicyDifference } from '../gateway/explain/difference/compare.js'
import { type ChangeSentence, sentencesOf } from '../gateway/explain/difference/sentences.js'
import { defineCommand } from './command.js'
import { loadInput } from './config.js'
import type { Io } from './io.js'
import { printable, wrap } from './text.js'

export const diff = defineCommand({
  name: 'diff',
  summary: 'Show what differs in effect between two configurations',
  operands: { usage: 'OLD NEW', least: 2, most: 2 },
  options: { json: { type: 'boolean', help: 'one JSON object instead of text' } },
  details: `OLD and NEW are each a gateway.yaml or its folder. Compares what applies in the end, not text: limits by plan, environment and bucket, requests that fall into another bucket, rules, projects with their overrides, and settings that decide about requests.

Exit code 0 when nothing differs, 1 when something does, 2 when one of them cannot be loaded.`,
  example: 'sluice diff ./config ./config-next',
  async run({ values, positionals: [before = '', after = ''] }, io) {
    const old = await loadInput(before, io.env)
    await old.compiled.close()
    const now = await loadInput(after, io.env)
    await now.compiled.close()
    const difference = compare(old, now)
    if (values.json) io.out(`${JSON.stringify(difference, null, 2)}\n`)
    else if (isSame(difference)) io.out('Nothing differs in effect.\n')
    else writeDifference(difference, io)
    return isSame(difference) ? 0 : 1
  },
})

const MARKS = { added: '+', removed: '-', changed: '~' } as const
const STYLES = { added: 'green', removed: 'red', changed: 'yellow' } as const

function writeDifference(difference: PolicyDifference, io: Io): void {
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
