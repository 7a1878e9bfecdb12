/** Errors of the admin port, as problem details. */
import { STATUS_CODES } from 'node:http'
import type { FastifyError, FastifyReply } from 'fastify'

/** Sends problem details (RFC 9457) with the status's own title; `more` are further members. */
export function sendProblem(
  reply: FastifyReply,
  status: number,
  detail: string,
  more: object = {},
): FastifyReply {
  const body = { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error', status, detail, ...more }
  return reply.code(status).type('application/problem+json').send(body)
}

/** Internal errors are only described in the log. */
export function sendError(reply: FastifyReply, { statusCode = 500, message }: FastifyError): void {
  sendProblem(reply, statusCode, statusCode >= 500 ? 'The log says why.' : (SENTENCES[statusCode] ?? message))
}

/** Replaces fastify's messages that do not say what to do. */
const SENTENCES: Readonly<Record<number, string>> = {
  413: 'The body is too large.',
  415: 'Send JSON, and say so: "Content-Type: application/json".',
}
