/** The command as a process: what its readers get. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { inProject } from '../helpers/root.js'
import { sleep } from '../helpers/wait.js'

t.test('a reader that is slow gets every problem', async t => {
  const routes = '  - { path: x }\n'.repeat(2_000)
  const config = t.testdir({ 'gateway.yaml': `version: 1\nupstreams: {}\nroutes:\n${routes}` })
  for (const command of ['check', 'serve']) {
    const child = spawn(process.execPath, [inProject('dist/gateway/cli.js'), command, '--config', config], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const exited = once(child, 'exit')
    await once(child.stderr, 'readable')
    await sleep(300)
    const problems = await text(child.stderr)
    t.ok(problems.length > 128 * 1024, `${command}: ${problems.length}`)
    t.match(problems, /\d+ problems in the configuration\.\n$/)
    t.equal((await exited)[0], 1)
  }
})
