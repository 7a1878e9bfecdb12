/** A paced load on both gateways, and what its clients saw. */
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { send } from '../../test/helpers/http.js'
import { hostOf } from './redis-setup.js'

const TICK_MS = 20
/** Requests a second to each gateway. */
const PAGES = 80
const WORKS = 15
/** How long to wait for outstanding responses at the end. */
const PATIENCE_MS = 10_000

export interface Seen {
  readonly sent: number
  /** Pages. */
  readonly admitted: number
  /** Statuses other than 200 and 429, with their counts. */
  readonly strange: ReadonlyMap<string, number>
  /** Of a page. */
  readonly longestMs: number
  readonly unanswered: number
}

/** Begins to load the gateways at `urls`; `stop` resolves to what was seen. */
export function startLoad(urls: readonly string[], project: string): { stop(): Promise<Seen> } {
  const agent = new Agent({ keepAlive: true })
  const headers = { host: hostOf(project) }
  const seen = { sent: 0, admitted: 0, strange: new Map<string, number>(), longestMs: 0 }
  const waiting = new Set<Promise<void>>()
  const started = performance.now()
  let isOn = true

  const count = (name: string) => seen.strange.set(name, (seen.strange.get(name) ?? 0) + 1)
  const ask = async (url: string, path: string, method: string) => {
    const sentAt = performance.now()
    seen.sent += 1
    const failed = (error: NodeJS.ErrnoException) => ({ status: error.code, body: '' })
    const { status, body } = await send(url + path, { method, agent, headers }).catch(failed)
    if (method === 'GET') {
      seen.longestMs = Math.max(seen.longestMs, performance.now() - sentAt)
      if (status === 200) seen.admitted += 1
    }
    if (status === 429 && body.includes('"watch"')) count('429 by a report-only rule')
    else if (status !== 200 && status !== 429) count(String(status))
  }
  const start = (url: string, path: string, method: string) => {
    const sent = ask(url, path, method).finally(() => waiting.delete(sent))
    waiting.add(sent)
  }
  const pacing = Promise.all(
    [
      { path: '/', method: 'GET', perSecond: PAGES },
      { path: '/work', method: 'POST', perSecond: WORKS },
    ].map(async ({ path, method, perSecond }) => {
      for (let asked = 0; isOn; ) {
        // On a busy machine the backlog is dropped, not sent in one burst.
        const due = Math.min(((performance.now() - started) / 1000) * perSecond - asked, 5)
        for (let i = 0; i < due; i += 1) {
          for (const url of urls) start(url, path, method)
          asked += 1
        }
        asked = Math.max(asked, ((performance.now() - started) / 1000) * perSecond - 5)
        await sleep(TICK_MS)
      }
    }),
  )
  return {
    async stop() {
      isOn = false
      await pacing
      await Promise.race([Promise.all(waiting), sleep(PATIENCE_MS, undefined, { ref: false })])
      agent.destroy()
      return { ...seen, unanswered: waiting.size }
    },
  }
}
