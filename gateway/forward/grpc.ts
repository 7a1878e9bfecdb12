/**
 * What clients of gRPC understand: refusals as a status in the fields of a response that ends with its head, and the
 * deadline of a call (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).
 */
import { CATALOGUE, type ErrorCode } from '../errors.js'
import type { RequestHead } from '../message.js'

/** Of gRPC itself, in any encoding of its messages; not of gRPC-Web, whose clients read problem documents. */
const CONTENT_TYPE = /^application\/grpc(?:[+;]|$)/i
const TIMEOUT = /^(\d{1,8})([HMSmun])$/
const UNITS: Readonly<Record<string, number>> = {
  ...{ H: 3_600_000, M: 60_000, S: 1000 },
  ...{ m: 1, u: 0.001, n: 0.000_001 },
}

/** Codes of google.rpc.Code by HTTP status. */
const CODES: Readonly<Record<number, number>> = {
  ...{ 401: 16, 403: 7, 404: 12, 405: 12, 408: 4 },
  ...{ 413: 8, 429: 8, 431: 8, 501: 12, 502: 14, 503: 14, 504: 14 },
}
const INTERNAL = 13
const NOT_FOUND = 5
const DEADLINE_EXCEEDED = 4
const OWN_CODES: Partial<Record<ErrorCode, number>> = {
  'deadline-exceeded': DEADLINE_EXCEEDED,
  'unknown-project': NOT_FOUND,
}

export function isGrpc({ version, fields }: Pick<RequestHead, 'version' | 'fields'>): boolean {
  return version === '2.0' && CONTENT_TYPE.test(fields.get('content-type') ?? '')
}

/** The time that a call may take in all, in ms; undefined if it has no deadline, or one that is not valid. */
export function grpcTimeoutMs(request: Pick<RequestHead, 'version' | 'fields'>): number | undefined {
  const written = request.fields.get('grpc-timeout')
  const [, amount, unit = ''] = written === undefined || !isGrpc(request) ? [] : (TIMEOUT.exec(written) ?? [])
  return amount === undefined ? undefined : Number(amount) * (UNITS[unit] as number)
}

/**
 * The fields of a refusal, as a flat list.
 *
 * @param retryAfter seconds
 */
export function grpcStatusFields(code: ErrorCode, message: string, retryAfter: number | undefined): string[] {
  const status = OWN_CODES[code] ?? CODES[CATALOGUE[code].status] ?? INTERNAL
  const fields = ['Content-Type', 'application/grpc', 'grpc-status', String(status)]
  fields.push('grpc-message', percentEncoded(message))
  if (retryAfter !== undefined) {
    fields.push('grpc-status-details-bin', statusWithRetry(status, message, retryAfter).toString('base64'))
  }
  return fields
}

/** Everything but visible ASCII and the space is escaped, and `%`. */
function percentEncoded(text: string): string {
  const bytes = Buffer.from(text, 'utf8')
  let encoded = ''
  for (const byte of bytes) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25
    encoded += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return encoded
}

const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo'

/** A google.rpc.Status with a google.rpc.RetryInfo, in the wire format of Protocol Buffers. */
function statusWithRetry(status: number, message: string, seconds: number): Buffer {
  const retryInfo = bytesField(1, numberField(1, seconds))
  const detail = Buffer.concat([bytesField(1, Buffer.from(RETRY_INFO)), bytesField(2, retryInfo)])
  return Buffer.concat([numberField(1, status), bytesField(2, Buffer.from(message)), bytesField(3, detail)])
}

function numberField(field: number, value: number): Buffer {
  return Buffer.concat([varint(field << 3), varint(value)])
}

function bytesField(field: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes])
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80)
  return Buffer.from([...bytes, rest])
}
