/** `POST /explain`: what the gateway would do with a request now, with its counters only looked at. */
import { METHODS, validateHeaderName, validateHeaderValue } from 'node:http'
import { isIP } from 'node:net'
import type { FastifyPluginAsync } from 'fastify'
import { UnknownQuestion } from '../errors.js'
import { sendProblem } from './problem.js'
import { LONGEST_PROJECT } from './settable.js'

/** A hypothetical request. */
export interface Asked {
  readonly method: string
  /** Path with its query, or an absolute address. */
  readonly target: string
  /** Id of the project to assume, whatever the request itself says. */
  readonly project?: string
  readonly host?: string
  /** Address of the TCP peer. */
  readonly ip?: string
  /** Name and value of each field. */
  readonly headers?: readonly (readonly [string, string])[]
  readonly body?: string
}

/** Rules look at 64 KiB of a body; JSON may escape one character as six. */
const MAX_BODY_BYTES = 512 * 1024
const text = (maxLength: number) => ({ type: 'string', minLength: 1, maxLength })
const SCHEMA = {
  type: 'object',
  required: ['method', 'target'],
  additionalProperties: false,
  properties: {
    method: text(32),
    target: text(8192),
    project: text(LONGEST_PROJECT),
    host: text(260),
    ip: text(64),
    headers: {
      type: 'array',
      maxItems: 100,
      items: { type: 'array', minItems: 2, maxItems: 2, items: { type: 'string', maxLength: 8192 } },
    },
    body: { type: 'string', maxLength: 65_536 },
  },
}

/** Why no client could send such a request; undefined when one could. */
function faultOf({ method, ip, headers = [] }: Asked): string | undefined {
  if (!METHODS.includes(method)) return `"${method}" is not a method.`
  if (ip !== undefined && isIP(ip) === 0) return `"${ip}" is not an IP address.`
  for (const [name, value] of headers) {
    try {
      validateHeaderName(name)
      validateHeaderValue(name, value)
    } catch (error) {
      return `A field of "headers" cannot be sent: ${(error as Error).message}.`
    }
  }
  return undefined
}

/** 200 with the explanation, 422 when there is no such project or no such request, 400 for an invalid question. */
export function explainRoute(explain: (asked: Asked) => Promise<object>): FastifyPluginAsync {
  return async app => {
    const summary = 'What the gateway would do with a request; nothing is charged'
    const options = { schema: { tags: ['Policy'], summary, body: SCHEMA }, bodyLimit: MAX_BODY_BYTES }
    app.post<{ Body: Asked }>('/explain', options, async (request, reply) => {
      const fault = faultOf(request.body)
      if (fault !== undefined) return sendProblem(reply, 422, fault)
      try {
        return await explain(request.body)
      } catch (error) {
        if (error instanceof UnknownQuestion) return sendProblem(reply, 422, error.message)
        throw error
      }
    })
  }
}
