/** `sluice check --connect`: what the configured Redis is, before a gateway counts on it. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { freePort } from '../helpers/child-server.js'
import { sluice } from '../helpers/command.js'
import { writeConfig } from '../helpers/gateway-process.js'
import { redisCommand, startOneNodeCluster, startRedis } from '../helpers/redis.js'

const checked = async (t: Test, redis: string, ...options: string[]) => {
  const yaml = `version: 1\nredis: "${redis}"\nupstreams: { a: { url: "http://127.0.0.1:1" } }\nroutes: [{ path: /**, upstream: a }]\n`
  const folder = writeConfig(t, yaml, {})
  return sluice(['check', '--config', join(folder, 'gateway.yaml'), '--connect', ...options])
}

t.test('without Redis there is nothing to connect to', async t => {
  const { code, out } = await checked(t, '')
  t.equal(code, 0)
  t.match(out, 'No Redis is configured: each process counts for itself.')
})

t.test('a Redis that counts is named with its version and what it does when its memory is full', async t => {
  if (redisCommand(t) === undefined) return
  const server = await startRedis()
  t.teardown(() => server.stop())
  const { code, out } = await checked(t, server.url)
  t.equal(code, 0)
  t.match(
    out,
    /(Redis|Valkey) \d+\.\d+\.\d+ at redis:\/\/127\.0\.0\.1:\d+ counts: one server, and a script over two slots runs\./,
  )
  t.match(out, 'When its memory is full it refuses to count (noeviction)')
  const json = await checked(t, server.url, '--json')
  t.match(JSON.parse(json.out), { good: true, redis: { counts: true } })
})

t.test('a Cluster behind one address is named as such', async t => {
  if (redisCommand(t) === undefined) return
  const server = await startOneNodeCluster()
  t.teardown(() => server.stop())
  const { code, out } = await checked(t, server.url)
  t.equal(code, 0)
  t.match(out, 'keys live in slots, as in a Cluster, and each slot is asked by itself')
})

t.test('a Redis that does not answer is a fault, and no password is shown', async t => {
  const port = await freePort()
  const { code, out } = await checked(t, `redis://:hidden@127.0.0.1:${port}`)
  t.equal(code, 1)
  t.match(out, `Redis at redis://127.0.0.1:${port} does not count (ECONNREFUSED)`)
  t.notMatch(out, 'hidden')
})
