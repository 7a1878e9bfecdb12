/**
 * `npm run fuzz [-- --messages 100000 --connections 20000 --seed 7]`: reads generated requests and responses with the
 * gateway's parser of HTTP/1.1 and with Node's, and fails at the first that they read differently
 * (test/gateway/http1/differential.test.ts); then plays mutated HTTP/2 connections against a gateway
 * (test/gateway/http2/server/mutated.test.ts).
 */
import { parseArgs } from 'node:util'
import { Failure, inProject, run, say, script } from './lib/run.mjs'

/** A long run takes about a minute per 50,000 of each; beyond this number the test would run out of memory. */
const MOST_MESSAGES = 1_000_000
/** A long run takes about a minute per 4,000. */
const MOST_CONNECTIONS = 1_000_000

const { values } = parseArgs({
  options: {
    messages: { type: 'string', default: '100000' },
    connections: { type: 'string', default: '20000' },
    seed: { type: 'string' },
  },
})
const messages = Number(values.messages)
const connections = Number(values.connections)
const seed = Number(values.seed ?? Date.now() % 2 ** 31)

await script(() => {
  if (messages !== 0 && !(messages >= 100 && messages <= MOST_MESSAGES)) {
    throw new Failure(`--messages takes a number from 100 to ${MOST_MESSAGES}, or 0 for none`)
  }
  if (!(connections >= 0 && connections <= MOST_CONNECTIONS)) {
    throw new Failure(`--connections takes a number from 0 to ${MOST_CONNECTIONS}`)
  }
  if (!Number.isInteger(seed)) throw new Failure('--seed takes a whole number')
  const env = { ...process.env, SEED: String(seed) }
  if (messages > 0) {
    play(`${messages} requests and ${messages} answers`, 'http1/differential.test.js', {
      env: { ...env, MESSAGES: String(messages) },
      failure: `The two parsers disagree, see above; again with --messages ${messages} --seed ${seed}`,
    })
  }
  if (connections > 0) {
    play(`${connections} mutated HTTP/2 connections`, 'http2/server/mutated.test.js', {
      env: { ...env, CONNECTIONS: String(connections) },
      failure: `See above; again with --messages 0 --connections ${connections} --seed ${seed}`,
    })
  }
})

/**
 * @param {string} what
 * @param {string} test below dist/test/gateway
 * @param {{ env: NodeJS.ProcessEnv, failure: string }} options
 */
function play(what, test, { env, failure }) {
  say(`${what} with seed ${seed}`)
  const started = performance.now()
  run(process.execPath, ['--enable-source-maps', inProject(`dist/test/gateway/${test}`)], failure, { env })
  say(`No fault in ${((performance.now() - started) / 1000).toFixed(0)} s`)
}
