/** Errors of the admin port as problem details, in sentences; so is the answer to input that is no HTTP request. */
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyInstance, FastifyReply, FastifySchemaValidationError } from 'fastify'
import { NotFound, Taken, Unnamed, Unreachable } from '../errors.js'

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

const STATUS: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

/** Fastify's `clientErrorHandler`. */
export function refuseClient({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
  if (code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const status = STATUS[code] ?? 400
  const title = STATUS_CODES[status]
  const detail =
    status === 431 ? 'The address and the fields are too long.' : 'This is not a complete HTTP request.'
  const body = JSON.stringify({ type: 'about:blank', title, status, detail })
  const fields = `Content-Type: application/problem+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close`
  socket.end(`HTTP/1.1 ${status} ${title}\r\n${fields}\r\n\r\n${body}`)
}

/** Answers these errors with 404, 409, 422 and 503. */
export function answerRefusals(app: FastifyInstance): void {
  app.setErrorHandler((error, _request, reply) => {
    if (error instanceof NotFound) return sendProblem(reply, 404, error.message)
    if (error instanceof Taken) return sendProblem(reply, 409, error.message)
    if (error instanceof Unnamed) return sendProblem(reply, 422, error.message)
    if (error instanceof Unreachable) return sendProblem(reply, 503, error.message)
    throw error
  })
}

const PLACES: Readonly<Record<string, string>> = {
  body: 'the body',
  querystring: 'the query',
  params: 'the path',
}
const LONGEST_NAME = 64

/** Patterns for which `WANTED` has a sentence. */
export const NOT_BLANK = '\\S'
export const SMALL_NAME = '^[a-z][a-z0-9._-]{0,63}$'
const WANTED: Readonly<Record<string, string>> = {
  [NOT_BLANK]: 'may not be blank',
  [SMALL_NAME]:
    'must begin with a lowercase letter and go on with at most 63 lowercase letters, digits, ".", "_" and "-"',
}

const KINDS: Readonly<Record<string, string>> = { string: 'text', array: 'a list' }

/** Fastify's `schemaErrorFormatter`. */
export function inputFault([fault]: readonly FastifySchemaValidationError[], part: string): Error {
  return new Error(`${fault === undefined ? 'It is wrong' : sentenceOf(fault, PLACES[part] ?? part)}.`)
}

function sentenceOf(fault: FastifySchemaValidationError, place: string): string {
  const { keyword, instancePath, params, message = 'is wrong' } = fault
  if (keyword === 'additionalProperties') return `${named(params.additionalProperty)} is unknown in ${place}`
  if (keyword === 'required') return `${named(params.missingProperty)} is missing in ${place}`
  if (instancePath === '') return `${place.replace('the', 'The')} must be a JSON object`
  const value = named(instancePath.slice(1).replaceAll('/', '.'))
  const { allowedValues, limit } = params
  if (keyword === 'minLength' && limit === 1) return `${value} in ${place} may not be empty`
  if (keyword === 'type') return `${value} in ${place} must be ${KINDS[String(params.type)] ?? params.type}`
  if (keyword === 'pattern') return `${value} in ${place} ${WANTED[String(params.pattern)] ?? message}`
  if (keyword === 'minItems') return `${value} in ${place} needs at least ${limit}`
  if (keyword === 'maxItems') return `${value} in ${place} may have at most ${limit}`
  if (keyword === 'maxLength') return `${value} in ${place} may have at most ${limit} characters`
  if (Array.isArray(allowedValues)) return `${value} in ${place} must be one of ${allowedValues.join(', ')}`
  return `${value} in ${place} ${message}`
}

function named(name: unknown): string {
  return `"${String(name).slice(0, LONGEST_NAME)}"`
}
