/** @fastify/http-proxy behind @fastify/rate-limit, in memory or on Redis. */
import type { IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'

const { UPSTREAM, PORT, MODULES, REDIS, MAX } = process.env
const installed = createRequire(MODULES ?? '')
const fastify = installed('fastify')
const { default: Redis } = installed('ioredis')

const app = fastify({ logger: false })
await app.register(installed('@fastify/rate-limit'), {
  max: Number(MAX),
  timeWindow: 60_000,
  keyGenerator: (request: IncomingMessage) => request.headers.host,
  // By default it keeps only 5000 keys.
  cache: 200_000,
  ...(REDIS ? { redis: new Redis(REDIS) } : {}),
})
await app.register(installed('@fastify/http-proxy'), { upstream: UPSTREAM })
await app.listen({ port: Number(PORT), host: '127.0.0.1' })
