/** `sluice diff`: what a changed configuration would change for its clients. */

import type { LiveChange, LiveOverridden } from '../gateway/admin/live-snapshot.js'
import { compare, isSame } from '../gateway/explain/difference/compare.js'
import { sentencesOf } from '../gateway/explain/difference/sentences.js'
import { ask } from './admin.js'
import { defineCommand, type ExitCode, Unusable } from './command.js'
import { loadInput } from './config.js'
import type { Io } from './io.js'
import { printable, wrap } from './text.js'

export const diff = defineCommand({
  name: 'diff',
  summary: 'Show what differs in effect between two configurations',
  operands: { usage: 'OLD NEW', least: 0, most: 2 },
  options: {
    live: {
      type: 'string',
      value: 'WHERE',
      help: 'in place of OLD and NEW: what overrides change at the running gateway at this admin address or configuration',
    },
    json: { type: 'boolean', help: 'one JSON object instead of text' },
  },
  details: `OLD and NEW are each a gateway.yaml or its folder. Compares what applies in the end, not text: limits by plan, environment and bucket, requests that fall into another bucket, rules, projects with their overrides, and settings that decide about requests.

Exit code 0 when nothing differs, 1 when something does, 2 when one of them cannot be loaded.`,
  example: 'sluice diff ./config ./config-next',
  async run({ values, positionals: [before, after] }, io) {
    if (values.live !== undefined) {
      if (before !== undefined) throw new Unusable('"diff --live" takes no OLD and NEW.')
      return diffLive(values.live, values.json === true, io)
    }
    if (before === undefined || after === undefined)
      throw new Unusable('"diff" needs OLD and NEW, or --live.')
    const old = await loadInput(before, io.env)
    await old.compiled.close()
    const now = await loadInput(after, io.env)
    await now.compiled.close()
    const difference = compare(old, now)
    if (values.json) io.out(`${JSON.stringify(difference, null, 2)}\n`)
    else if (isSame(difference)) io.out('Nothing differs in effect.\n')
    else writeSentences(sentencesOf(difference), io)
    return isSame(difference) ? 0 : 1
  },
})

const MARKS = { added: '+', removed: '-', changed: '~' } as const
const STYLES = { added: 'green', removed: 'red', changed: 'yellow' } as const

async function diffLive(where: string, json: boolean, io: Io): Promise<ExitCode> {
  const answer = await ask<LiveOverridden>({ path: '/overrides/changes' }, where, io)
  const { changes } = answer
  if (json) io.out(`${JSON.stringify(answer, null, 2)}\n`)
  else if (changes.length === 0) io.out('Nothing differs in effect: no override is in force.\n')
  else writeSentences(changes, io)
  return changes.length === 0 ? 0 : 1
}

function writeSentences(sentences: Iterable<LiveChange>, io: Io): void {
  let above: string | undefined
  for (const one of sentences) {
    if (one.heading !== above) io.out(`${io.style('bold', wrap(one.heading, io.columns))}\n`)
    above = one.heading
    line(one, io)
  }
}

function line({ change, sentence }: LiveChange, io: Io): void {
  const [first, ...rest] = wrap(printable(sentence), io.columns - 6).split('\n')
  io.out(
    `  ${io.style(STYLES[change], MARKS[change])} ${first}\n${rest.map(one => `      ${one}\n`).join('')}`,
  )
}
