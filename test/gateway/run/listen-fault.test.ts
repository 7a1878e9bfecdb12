import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { createServer } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import t from 'tap'
import { listenFault } from '../../../gateway/run/listen-fault.js'
import { waitUntil } from '../../helpers/wait.js'

const thrown = (setting: 'listen' | 'admin', host: string, port: number, code: string): string => {
  try {
    return listenFault(setting, { host, port })(Object.assign(new Error('as Node says it'), { code }))
  } catch (error) {
    return (error as Error).message
  }
}

t.test('an address that cannot be listened on is reported with its setting', async t => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  const taken = thrown('admin', '127.0.0.1', port, 'EADDRINUSE')
  t.match(taken, `Port ${port} on 127.0.0.1 is in use`)
  t.match(taken, 'Choose another (admin.port in gateway.yaml, or ADMIN_PORT where it says so).')
  if (process.platform === 'linux') t.match(taken, 'by this gateway itself: its ports must differ')
  t.match(
    thrown('listen', '::', 80, 'EACCES'),
    'This user may not listen on port 80. Choose one above 1023 (listen.port',
  )
  t.match(
    thrown('listen', '10.9.9.9', 80, 'EADDRNOTAVAIL'),
    'listen.host: 10.9.9.9 is no address of this machine.',
  )
  t.match(thrown('listen', 'nowhere', 80, 'ENOTFOUND'), 'listen.host: no address is known for "nowhere".')
  t.equal(thrown('listen', '::', 80, 'EMFILE'), 'as Node says it', 'an unknown error is passed on')
})

t.test('a stopped owner of a port is named with the command that ends it', async t => {
  if (process.platform !== 'linux') return
  const code = `require('net').createServer().listen(0, '127.0.0.1', function () { console.log(this.address().port) })`
  const owner = spawn(process.execPath, ['-e', code])
  t.teardown(() => owner.kill('SIGKILL'))
  const [port] = (await once(owner.stdout, 'data')) as [Buffer]
  t.notMatch(thrown('listen', '127.0.0.1', Number(port), 'EADDRINUSE'), 'stopped')
  owner.kill('SIGSTOP')
  const { pid } = owner
  t.match(
    await waitUntil('the stop', () => {
      const taken = thrown('listen', '127.0.0.1', Number(port), 'EADDRINUSE')
      return taken.includes('stopped') ? taken : undefined
    }),
    `(process ${pid}), which is stopped: "kill -KILL ${pid}" ends it. Choose another (listen.port`,
  )
})

t.test('the owner of a port is named where IPv6 is disabled, too', async t => {
  if (process.platform !== 'linux') return
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  const { existsSync, readFileSync } = fs
  t.teardown(() => {
    Object.assign(fs, { existsSync, readFileSync })
    syncBuiltinESMExports()
  })
  const without = (path: string) => (path === '/proc/net/tcp6' ? '/proc/no-such-file' : path)
  Object.assign(fs, {
    existsSync: (path: string) => existsSync(without(path)),
    readFileSync: (path: string, encoding: BufferEncoding) => readFileSync(without(path), encoding),
  })
  syncBuiltinESMExports()
  const taken = thrown('admin', '127.0.0.1', port, 'EADDRINUSE')
  t.match(taken, 'by this gateway itself: its ports must differ')
})
