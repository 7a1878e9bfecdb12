/**
 * `npm run fuzz [-- --messages 100000 --seed 7]`: reads generated requests and responses with the gateway's parser and
 * with Node's, and fails at the first that they read differently (test/gateway/http1/differential.test.ts).
 */
import { parseArgs } from 'node:util'
import { Failure, inProject, run, say, script } from './lib/run.mjs'

/** A long run takes about a minute per 50,000 of each; beyond this number the test would run out of memory. */
const MOST_MESSAGES = 1_000_000

const { values } = parseArgs({
  options: { messages: { type: 'string', default: '100000' }, seed: { type: 'string' } },
})
const messages = Number(values.messages)
const seed = Number(values.seed ?? Date.now() % 2 ** 31)

await script(() => {
  if (!(messages >= 100 && messages <= MOST_MESSAGES)) {
    throw new Failure(`--messages takes a number from 100 to ${MOST_MESSAGES}`)
  }
  if (!Number.isInteger(seed)) throw new Failure('--seed takes a whole number')
  say(`${messages} requests and ${messages} answers with seed ${seed}`)
  const started = performance.now()
  run(
    process.execPath,
    ['--enable-source-maps', inProject('dist/test/gateway/http1/differential.test.js')],
    `The two parsers disagree, see above; again with --messages ${messages} --seed ${seed}`,
    { env: { ...process.env, MESSAGES: String(messages), SEED: String(seed) } },
  )
  say(`No disagreement in ${((performance.now() - started) / 1000).toFixed(0)} s`)
})
