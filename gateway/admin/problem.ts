/** Errors of the admin port, as problem details. */
import { STATUS_CODES } from 'node:http'
import type { FastifyError, FastifyReply } from 'fastify'

/** Problem details (RFC 9457) of a status that says it all; `more` stands beside them. */
export function sendProblem(
  reply: FastifyReply,
  status: number,
  detail: string,
  more: object = {},
): FastifyReply {
  const body = { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error', status, detail, ...more }
  return reply.code(status).type('application/problem+json').send(body)
}

/** What went wrong inside stays in the log. */
export function sendError(reply: FastifyReply, { statusCode = 500, message }: FastifyError): void {
  sendProblem(reply, statusCode, statusCode >= 500 ? 'The log says why.' : (SENTENCES[statusCode] ?? message))
}

/** Replaces fastify's messages that do not say what to do. */
const SENTENCES: Readonly<Record<number, string>> = {
  413: 'The body is too large.',
  415: 'Send JSON, and say so: "Content-Type: application/json".',
}
