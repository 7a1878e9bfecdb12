/** Reads the stream of live events, as the page does. */
import { type IncomingMessage, request } from 'node:http'
import type { Test } from 'tap'
import type { LiveSnapshot } from '../../gateway/admin/live-snapshot.js'
import { waitUntil } from './wait.js'

export interface LiveReader {
  readonly status: number
  /** The snapshots so far. */
  readonly snapshots: LiveSnapshot[]
  /** Resolves to the next snapshot for which `wanted` is truthy. */
  next(awaited: string, wanted?: (snapshot: LiveSnapshot) => unknown): Promise<LiveSnapshot>
  /** Whether the gateway has ended the stream. */
  ended(): boolean
  close(): void
}

/** Opens `/live/events` of an admin port; closed when the test ends. */
export async function openLive(t: Test, adminUrl: string, key?: string): Promise<LiveReader> {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
  const asked = request(`${adminUrl}/live/events`, { headers, agent: false })
  asked.on('error', () => undefined)
  asked.end()
  t.teardown(() => asked.destroy())
  const answer = await new Promise<IncomingMessage>(resolve => asked.once('response', resolve))
  const snapshots: LiveSnapshot[] = []
  let text = ''
  let isOver = false
  answer.on('data', (chunk: Buffer) => {
    text += chunk.toString()
    const events = text.split('\n\n')
    text = events.pop() ?? ''
    for (const event of events) {
      const data = /^event: live\ndata: (.*)$/.exec(event)?.[1]
      if (data !== undefined) snapshots.push(JSON.parse(data))
    }
  })
  answer.on('close', () => {
    isOver = true
  })
  answer.on('error', () => undefined)
  return {
    status: answer.statusCode ?? 0,
    snapshots,
    next(awaited, wanted = () => true) {
      const seen = snapshots.length
      return waitUntil(awaited, () => snapshots.slice(seen).find(wanted))
    },
    ended: () => isOver,
    close: () => asked.destroy(),
  }
}
