/** `npm run stores`: the store's contract on each server that people run in place of the distribution's Redis. */
import { spawnSync } from 'node:child_process'
import { Failure, inProject, root, say, script } from './lib/run.mjs'
import { installStores } from './lib/stores.mjs'

await script(() => {
  for (const { name, server, tests } of installStores()) {
    say(`${name}:`)
    const files = tests.map(test => `test/gateway/decide/${test}.test.ts`)
    const env = { ...process.env, REDIS_SERVER: server, REDIS_URL: '' }
    const options = { cwd: root, env, stdio: 'inherit' }
    const { status } = spawnSync(process.execPath, [inProject('scripts', 'test.mjs'), ...files], options)
    if (status !== 0) throw new Failure(`${name} does not keep the contract; see above`)
  }
})
