/** Lets clients work, and tells what came of it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { below } from './chance.mjs'
import { http1Clients } from './http1.mjs'
import { http2Clients } from './http2.mjs'

/** For who still waits when all is over; the longest that anybody has to is a few time limits of the gateway. */
const PATIENCE_MS = 60_000

/**
 * All clients at once, those of HTTP/2 where the gateway ends TLS, until `until` says no.
 *
 * @returns for each client how often it did its work and which statuses came, and the names of those left waiting
 */
export async function work(url, until) {
  const kinds = url.startsWith('https:') ? [http1Clients(url), http2Clients(url)] : [http1Clients(url)]
  const waiting = new Set()
  const results = kinds.flatMap(({ clients }) => clients.map(client => ({ client, times: 0, statuses: {} })))
  const running = results.flatMap(result =>
    Array.from({ length: result.client.many }, async () => {
      while (until()) {
        const turn = { name: result.client.name }
        waiting.add(turn)
        const status = await result.client.do()
        waiting.delete(turn)
        result.times += 1
        if (status !== undefined) result.statuses[status] = (result.statuses[status] ?? 0) + 1
        await sleep(below(10))
      }
    }),
  )
  const end = async () => {
    while (until()) await sleep(100)
    await sleep(PATIENCE_MS, undefined, { ref: false })
  }
  await Promise.race([Promise.all(running), end()])
  for (const { close } of kinds) close()
  return { results, leftWaiting: [...waiting].map(({ name }) => name) }
}
