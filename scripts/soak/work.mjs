/** Runs the clients and collects their results. */
import { setTimeout as sleep } from 'node:timers/promises'
import { below } from './chance.mjs'
import { http1Clients } from './http1.mjs'
import { http2Clients } from './http2.mjs'

/** For clients still waiting at the end; the longest that any has to wait is a few timeouts of the gateway. */
const PATIENCE_MS = 60_000

/**
 * Runs all clients at once, HTTP/2 ones too when the gateway terminates TLS, until `until` returns false.
 *
 * @returns for each client how often it ran and which statuses it got, and the names of those left waiting
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
