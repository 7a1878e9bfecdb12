/** `POST /reload`: reloads the configuration and answers with the result. */
import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { sendProblem } from './problem.js'

/** How a reload ended, and the revision that is in force after it. */
export type ReloadResult<Problem = object> =
  | {
      readonly result: 'loaded'
      readonly revision: string
      /** Settings that only a restart can change: this process keeps the value it was started with. */
      readonly needsRestart: readonly string[]
    }
  | {
      readonly result: 'refused'
      readonly revision: string
      /** The first hundred, in the order of their places. */
      readonly problems: readonly Problem[]
      readonly problemCount: number
    }

/** 200 with the revision, or 422 with every problem and its place. */
export function reloadRoute(reload: () => Promise<ReloadResult>): FastifyPluginAsync {
  return async app => {
    // A body is ignored.
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, _body, done) => done(null))

    const schema = {
      tags: ['Policy'],
      summary: 'Reload the configuration: 200, or 422 with its problems',
    }
    app.post('/reload', { schema }, async (request, reply) => {
      if (mayBeForged(request)) {
        const detail =
          'Pages of other sites may not do this. Send it without an Origin field, or as application/json.'
        return sendProblem(reply, 403, detail)
      }
      const reloaded = await reload()
      if (reloaded.result === 'loaded') return reloaded
      const { revision, problems, problemCount } = reloaded
      const detail = `The configuration has errors: ${revision} stays in force.`
      return sendProblem(reply, 422, detail, { revision, problems, problemCount })
    })
  }
}

/**
 * A browser lets any site send forms here, with an Origin; JSON only after a preflight, which this port never grants.
 */
function mayBeForged({ headers }: FastifyRequest): boolean {
  const [type = ''] = (headers['content-type'] ?? '').split(';')
  return headers.origin !== undefined && type.trim().toLowerCase() !== 'application/json'
}
