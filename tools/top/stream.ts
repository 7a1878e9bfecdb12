/** Follows the live data of a running gateway. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { LiveSnapshot } from '../../gateway/admin/live-snapshot.js'
import { Failure } from '../../gateway/errors.js'
import { type AdminPort, noAdminPort } from '../admin.js'
import { printable } from '../text.js'

/** The next snapshot, or why there is none at the moment. */
export type SeenSnapshot = { readonly snapshot: LiveSnapshot } | { readonly lost: string }

/** A stream sends a snapshot every second; after this long without one the connection counts as lost. */
const SILENT_MS = 5000
const PAUSES_MS = [1000, 2000, 5000]

/**
 * Yields snapshots as they arrive, until `signal`. A lost connection is reported and retried.
 *
 * @throws {Failure} when the first attempt fails, or when the key is wrong
 */
export async function* follow(port: AdminPort, signal: AbortSignal): AsyncGenerator<SeenSnapshot> {
  let failures = 0
  let everSeen = false
  while (!signal.aborted) {
    try {
      for await (const snapshot of snapshotsOf(port, signal)) {
        everSeen = true
        failures = 0
        yield { snapshot }
      }
      if (!signal.aborted) yield { lost: 'The gateway has ended the stream' }
    } catch (error) {
      if (signal.aborted) return
      if (!everSeen || error instanceof Refused) throw error
      yield { lost: (error as Error).message.replace(/\.$/, '') }
    }
    const pause = PAUSES_MS[Math.min(failures, PAUSES_MS.length - 1)]
    failures += 1
    await sleep(pause, undefined, { signal }).catch(() => undefined)
  }
}

/** An error that another attempt would only repeat. */
class Refused extends Failure {}

async function* snapshotsOf({ origin, key }: AdminPort, signal: AbortSignal): AsyncGenerator<LiveSnapshot> {
  const url = `${origin}/live/events`
  const silence = new AbortController()
  const either = AbortSignal.any([signal, silence.signal])
  let timer = setTimeout(() => silence.abort(), SILENT_MS)
  const alive = () => {
    clearTimeout(timer)
    timer = setTimeout(() => silence.abort(), SILENT_MS)
  }
  try {
    const headers = new Headers(key === '' ? {} : { authorization: `Bearer ${key}` })
    const answer = await fetch(url, { headers, signal: either }).catch(() => {
      throw new Failure(`Nothing answers on ${url}. Does the gateway run?`)
    })
    if (answer.status !== 200 || answer.body === null) throw await refusal(answer, url)
    if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) throw noAdminPort(answer.status)
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of answer.body) {
      alive()
      text += decoder.decode(chunk, { stream: true })
      const events = text.split('\n\n')
      text = events.pop() ?? ''
      for (const event of events) {
        const [, json] = /^event: live\ndata: (.*)$/.exec(event) ?? []
        if (json !== undefined) yield JSON.parse(json) as LiveSnapshot
      }
    }
  } catch (error) {
    throw error instanceof Failure ? error : new Failure(`The connection to ${origin} is lost.`)
  } finally {
    clearTimeout(timer)
    silence.abort()
  }
}

async function refusal(answer: Response, url: string): Promise<Failure> {
  if (answer.status === 401) {
    return new Refused('The admin port asks for its key: set ADMIN_KEY in the environment.')
  }
  const { detail } = (await answer.json().catch(() => ({}))) as { detail?: unknown }
  if (typeof detail !== 'string') return noAdminPort(answer.status)
  return new Failure(`${url} does not say what happens now (${answer.status}): ${printable(detail)}`)
}
