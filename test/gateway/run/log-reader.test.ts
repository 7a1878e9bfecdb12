/** A log that nobody reads any more, or that has no room, neither ends the gateway nor keeps it from ending. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync } from 'node:fs'
import t, { type Test } from 'tap'
import { freePort } from '../../helpers/child-server.js'
import { writeConfig } from '../../helpers/gateway-process.js'
import { send, startApp } from '../../helpers/http.js'
import { inProject } from '../../helpers/root.js'
import { waitUntil } from '../../helpers/wait.js'

/** A gateway whose stdout is `stdout`, once it takes requests. */
async function serve(
  t: Test,
  stdout: number | 'pipe',
  workers = 1,
): Promise<{ gateway: ChildProcess; url: string }> {
  const upstream = await startApp(t, (_req, res) => res.end('here'))
  const port = await freePort()
  const folder = writeConfig(
    t,
    `version: 1
listen: { host: 127.0.0.1, port: ${port}, workers: ${workers} }
admin: { host: 127.0.0.1, port: 0 }
log: { access: all }
${workers > 1 ? 'redis: redis://127.0.0.1:9' : ''}
upstreams: { app: { url: "${upstream}" } }
routes: [{ path: /**, upstream: app }]
`,
    {},
  )
  const gateway = spawn(process.execPath, [inProject('dist/gateway/cli.js'), 'serve', '--config', folder], {
    env: { PATH: process.env.PATH ?? '' },
    stdio: ['ignore', stdout, 'ignore'],
  })
  t.teardown(() => gateway.kill('SIGKILL'))
  const url = `http://127.0.0.1:${port}`
  const answers = () =>
    send(url).then(
      ({ status }) => status === 200,
      () => false,
    )
  await waitUntil('the gateway to answer', answers)
  return { gateway, url }
}

for (const workers of [1, 2]) {
  t.test(
    `a gateway with ${workers} worker${workers > 1 ? 's' : ''} ends after its log's reader has gone`,
    async t => {
      const { gateway } = await serve(t, 'pipe', workers)
      const { stdout } = gateway
      if (stdout === null) return
      let seen = ''
      stdout.on('data', chunk => {
        seen += chunk
        // As `sluice serve | head` does: the reader leaves when it has seen enough.
        if (seen.includes('Draining')) stdout.destroy()
      })
      await waitUntil('all to be ready', () => seen.includes('is ready'))
      gateway.kill('SIGTERM')
      t.strictSame(await once(gateway, 'exit'), [0, null])
    },
  )
}

t.test('a gateway ends while the reader of its log stands still', async t => {
  const { gateway, url } = await serve(t, 'pipe')
  gateway.stdout?.pause()
  // More than a pipe holds.
  for (let i = 0; i < 2000; i += 1) await send(`${url}/${'x'.repeat(100)}`)
  gateway.kill('SIGTERM')
  t.strictSame(await once(gateway, 'exit'), [0, null])
})

const noFullDisk = existsSync('/dev/full') ? false : 'this system has no /dev/full'
t.test('a gateway serves and ends although its log has no room', { skip: noFullDisk }, async t => {
  const { gateway, url } = await serve(t, openSync('/dev/full', 'w'))
  t.equal((await send(url)).status, 200)
  gateway.kill('SIGTERM')
  t.strictSame(await once(gateway, 'exit'), [0, null])
})
