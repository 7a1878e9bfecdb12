import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { Redis } from 'ioredis'
import t from 'tap'
import { faultProxy } from './faults.js'
import { redisCommand, startRedis } from './redis.js'
import { sleep, waitUntil } from './wait.js'

t.test('the fault proxy applies the fault that is set', async t => {
  const echo = createServer(
    { allowHalfOpen: true },
    socket => void socket.on('error', () => undefined).pipe(socket),
  )
  echo.listen(0, '127.0.0.1')
  await once(echo, 'listening')
  const proxy = await faultProxy((echo.address() as AddressInfo).port)
  t.teardown(async () => {
    await proxy.stop()
    echo.close()
  })
  const exchange = async (message: string) => {
    const socket = connect(proxy.port, '127.0.0.1')
    const started = performance.now()
    socket.end(message)
    const answer = await text(socket).catch((error: NodeJS.ErrnoException) => error.code ?? String(error))
    return { answer, ms: performance.now() - started }
  }

  t.equal((await exchange('hello')).answer, 'hello', 'pass')
  const big = 'x'.repeat(1_000_000)
  t.equal((await exchange(big)).answer, big, 'pass a megabyte')

  await proxy.set({ kind: 'latency', ms: 30 })
  const late = await exchange('hello')
  t.equal(late.answer, 'hello')
  t.ok(late.ms >= 50 && late.ms < 3000, `latency in both directions: ${late.ms} ms`)

  await proxy.set({ kind: 'slow', bytes: 2, ms: 20 })
  const slow = await exchange('12345678')
  t.equal(slow.answer, '12345678')
  t.ok(slow.ms >= 50, `slow: ${slow.ms} ms`)

  await proxy.set({ kind: 'cut', after: 3 })
  t.equal((await exchange('hello')).answer, 'hel', 'cut')

  await proxy.set({ kind: 'reset' })
  t.equal((await exchange('hello')).answer, 'ECONNRESET', 'reset')

  await proxy.set({ kind: 'refuse' })
  t.equal((await exchange('hello')).answer, 'ECONNREFUSED', 'refuse')

  await proxy.set({ kind: 'pass' })
  const old = connect(proxy.port, '127.0.0.1')
  t.teardown(() => old.destroy())
  let heard = ''
  old.on('data', chunk => {
    heard += chunk
  })
  old.write('before')
  await waitUntil('the echo', () => heard === 'before')
  await proxy.set({ kind: 'halfopen' })
  old.write('after')
  t.equal((await exchange('hello')).answer, 'hello', 'half-open: a new connection passes')
  await proxy.set({ kind: 'pass' })
  await sleep(60)
  t.equal(heard, 'before', 'half-open: an old connection stays dead after the fault ends')
  t.ok(old.writable)

  await proxy.set({ kind: 'blackhole' })
  let answered = false
  const waiting = exchange('hello').then(result => {
    answered = true
    return result
  })
  await sleep(60)
  t.equal(answered, false, 'blackhole: nothing arrives')
  await proxy.set({ kind: 'pass' })
  t.equal((await waiting).answer, 'hello', 'blackhole: data that was held arrives once the fault ends')
  t.equal(proxy.connections, 9)
})
t.test('a Redis server started by a test can be paused, killed and restarted', async t => {
  if (!redisCommand(t)) return
  const server = await startRedis()
  t.teardown(server.stop)
  const redis = new Redis(server.url, {
    commandTimeout: 500,
    enableOfflineQueue: false,
    retryStrategy: () => 20,
  })
  redis.on('error', () => undefined)
  t.teardown(() => redis.disconnect())
  await once(redis, 'ready')
  await redis.set('key', 'value')

  server.pause()
  await t.rejects(redis.get('key'), { message: 'Command timed out' })
  server.resume()
  t.equal(await redis.get('key'), 'value')

  await server.kill()
  await t.rejects(redis.get('key'))
  await server.restart()
  await waitUntil('the client is back', () => redis.status === 'ready')
  t.equal(await redis.get('key'), null)
})
