/** `npm run stores`: the store's contract on each server that people run in place of the distribution's Redis. */
import { say, script } from './lib/run.mjs'
import { installStores } from './lib/stores.mjs'
import { runTests } from './lib/tests.mjs'

await script(() => {
  for (const { name, server, tests } of installStores()) {
    say(`${name}:`)
    const files = tests.map(test => `test/gateway/decide/${test}.test.ts`)
    const env = { REDIS_SERVER: server, REDIS_URL: '' }
    runTests(files, env, `${name} does not keep the contract; see above`)
  }
})
