/**
 * Open streams of server-sent events. A client that does not read costs one snapshot at most, and is disconnected in
 * the end.
 */
import type { ServerResponse } from 'node:http'
import type { LiveData } from './live.js'

const MOST_STREAMS = 20
/** Interval of comments, which keep proxies from closing a silent connection. */
const COMMENT_MS = 15_000
/** How long a client may go without reading. */
const PATIENCE_MS = 30_000

export class LiveStreams {
  readonly #live: Pick<LiveData, 'watch'>
  readonly #open = new Set<ServerResponse>()

  constructor(live: Pick<LiveData, 'watch'>) {
    this.#live = live
  }

  get isFull(): boolean {
    return this.#open.size >= MOST_STREAMS
  }

  /** Answers with a stream until the client disconnects. */
  open(res: ServerResponse): void {
    this.#open.add(res)
    res.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      // nginx would buffer events before it passes them on.
      'x-accel-buffering': 'no',
    })
    res.flushHeaders()
    let waitsSince: number | undefined
    const write = (text: string): void => {
      const now = performance.now()
      if (!res.writableNeedDrain) {
        waitsSince = undefined
        res.write(text)
        return
      }
      waitsSince ??= now
      if (now - waitsSince > PATIENCE_MS) res.destroy()
    }
    const unwatch = this.#live.watch((event, json) => write(`event: ${event}\ndata: ${json}\n\n`))
    const comments = setInterval(() => write(': still here\n\n'), COMMENT_MS)
    res.on('error', () => undefined)
    res.once('close', () => {
      unwatch()
      clearInterval(comments)
      this.#open.delete(res)
    })
  }

  /** Ends all streams. */
  close(): void {
    for (const res of this.#open) res.end()
  }
}
