/** docs/rollout.md: a rule from its first line to its first refusal, on nine days of sign-ups. */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { copyShipped } from './servers.js'
import { type AskedRequest, DAY, HOUR, logOf, MINUTE } from './traffic.js'
import { movedDay, type PageWalk, walk } from './walk.js'

const RULES = 'policies/volumetric.yaml'

/**
 * Sixty-nine sign-ups a day, each from an address of its own; an office with seven in a row, and one client with
 * twelve.
 */
function signUps(): AskedRequest[] {
  const first = movedDay(Date.UTC(2026, 10, 13)) + 13 * HOUR + 56 * MINUTE
  return Array.from({ length: 9 }, (_, day) => day).flatMap(day => {
    const ordinary = Array.from({ length: 69 }, (_, i) => `203.0.${day}.${i}`)
    const office = day % 3 === 1 ? Array<string>(7).fill('198.51.100.7') : []
    const twelve = day === 5 ? Array<string>(12).fill('192.0.2.66') : []
    return [...ordinary, ...office, ...twelve].map((from, i) => ({
      ...{ at: first + day * DAY + i * 900, from, host: 'acme.localhost' },
      ...{ method: 'POST', path: '/self-service/registration' },
    }))
  })
}

function edit(file: string, ...changes: readonly (readonly [RegExp, string])[]): void {
  writeFileSync(
    file,
    changes.reduce((text, [from, to]) => text.replace(from, to), readFileSync(file, 'utf8')),
  )
}

t.test('docs/rollout.md: a rule is written, watched, tried and enforced', async t => {
  const writeRule = (walk: PageWalk) => {
    const { folder, shown } = walk
    copyShipped(walk)
    appendFileSync(join(folder, 'config', RULES), `\n${shown('  # Sign-ups in a row')}`)
    edit(join(folder, 'config', 'gateway.yaml'), [/^log: .*$/m, shown('log: { decisions: all }').trim()])
  }
  const today = new Date().toISOString().slice(0, 10)
  await walk(t, 'docs/rollout.md', {
    before: {
      'check --config config': writeRule,
      would_deny: async ({ folder }) =>
        writeFileSync(join(folder, 'gateway.log'), await logOf(t, join(folder, 'config'), signUps())),
      'replay gateway.log': ({ folder }) =>
        edit(
          join(folder, 'next', RULES),
          [/requests: 5,/, 'requests: 7,'],
          [/report-only\n {4}since: .*\n$/, `enforce\n    since: ${today}\n`],
        ),
    },
  })
})
