/** `/live`: what happens now, once or as a stream of server-sent events; and `/changes`. */
import type { ServerResponse } from 'node:http'
import type { FastifyPluginAsync } from 'fastify'
import type { LiveChanges, LiveHistory, LiveOverridden, LiveSnapshot } from './live-snapshot.js'
import { answerRefusals, sendProblem } from './problem.js'
import { LONGEST_PROJECT } from './settable.js'

/** What the history is about: a rule, a project, or all requests. */
export interface HistoryOf {
  readonly rule?: string
  readonly project?: string
}

/** Receives a snapshot or an override as JSON. */
export type LiveListener = (event: 'live' | 'override', json: string) => void

export interface LiveData {
  snapshot(): LiveSnapshot | Promise<LiveSnapshot>
  /** @throws {NotFound} for an unknown rule or project */
  history(of: HistoryOf): LiveHistory | Promise<LiveHistory>
  /** Null if there has been only one policy. */
  changes(): LiveChanges | null
  /** What the overrides change of what the files say. */
  overridden(): LiveOverridden
  /** Sends a snapshot at once and then each second, until the returned function is called. */
  watch(listener: LiveListener): () => void
}

const name = (description: string, maxLength: number) =>
  ({ type: 'string', minLength: 1, maxLength, description }) as const
/** The longest name of a bucket, and the suffix of its trial. */
const LONGEST_RULE = 70

const liveSchema = {
  tags: ['Live'],
  summary:
    'What happens now: rates by rule and project, counters close to a limit, slots, upstreams, workers',
  description:
    'Rates are per second over the last ten. Counters close to a limit are looked for only while somebody asks: the first answer after a pause has none.',
}
const eventsSchema = {
  tags: ['Live'],
  summary: 'The same as server-sent events, one at once and then one a second',
  description:
    '"event: live" carries what GET /live answers, "event: override" an override through this port, each as JSON in one data line. A comment comes every 15 s. A reader that is too slow misses snapshots, and is cut off after 30 s without reading. At most 20 streams: beyond that 503.',
  produces: ['text/event-stream'],
}
const historySchema = {
  tags: ['Live'],
  summary: 'The last hour in steps of ten seconds: of a rule, of a project, or of all requests',
  querystring: {
    type: 'object',
    additionalProperties: false,
    properties: {
      rule: name('Name of a bucket, trial or rule.', LONGEST_RULE),
      project: name('Id of a project; host:NAME.', LONGEST_PROJECT),
    },
  },
}
const changesSchema = {
  tags: ['Policy'],
  summary:
    'What differs in effect between the policy in force and the one before it; null when there was only one',
}

const overriddenSchema = {
  tags: ['Policy'],
  summary: 'What modes, access entries and negotiated limits set at run time change of what the files say',
}

export function liveRoutes(live: LiveData): FastifyPluginAsync {
  return async app => {
    answerRefusals(app)
    const streams = new LiveStreams(live)
    // Endless responses would keep the port from closing.
    app.addHook('preClose', async () => streams.close())
    app.get('/live', { schema: liveSchema }, async () => live.snapshot())
    // HEAD would open a stream without anybody to read it.
    app.get('/live/events', { schema: eventsSchema, exposeHeadRoute: false }, async (_request, reply) => {
      if (streams.isFull) {
        return sendProblem(reply, 503, 'No more streams may be open: close one, or ask GET /live.')
      }
      reply.hijack()
      streams.open(reply.raw)
      return reply
    })
    app.get<{ Querystring: HistoryOf }>(
      '/live/history',
      { schema: historySchema },
      async ({ query }, reply) => {
        if (query.rule !== undefined && query.project !== undefined)
          return sendProblem(reply, 400, 'Name a rule or a project, not both.')
        return live.history(query)
      },
    )
    app.get('/changes', { schema: changesSchema }, async (_request, reply) =>
      reply.type('application/json').send(JSON.stringify(live.changes())),
    )
    app.get('/overrides/changes', { schema: overriddenSchema }, async () => live.overridden())
  }
}

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
