/**
 * The head of a response from the fields of its header block (RFC 9113 sections 8.2 and 8.3.2), with the rules, the
 * limits and the form of HTTP/1.1: what is refused there is malformed here.
 */
import { STATUS_CODES } from 'node:http'
import { responseFraming } from '../../http1/framing.js'
import { MAX_RESPONSE_HEAD } from '../../http1/response-limits.js'
import { Fields } from '../../message.js'
import type { ResponseHead } from '../../outgoing-request.js'
import { asStreamError, checkField, malformed } from '../field-rules.js'
import type { BlockLimits, DecodedBlock } from '../hpack/decoder.js'
import type { HeaderField } from '../hpack/header-field.js'

/** A field line of HTTP/1.1 has these besides its name and value: `: ` and a line break. */
const LINE_BYTES = 4
/** Fields count 32 bytes each here, where HTTP/1.1 counts LINE_BYTES. */
const MOST_FIELDS = MAX_RESPONSE_HEAD / LINE_BYTES
export const HEAD_LIMITS: BlockLimits = { fields: MOST_FIELDS, bytes: MAX_RESPONSE_HEAD + 32 * MOST_FIELDS }

const STATUS = /^[1-9]\d\d$/

export interface ResponseParts {
  readonly head: ResponseHead
  /** Bytes of content that must follow: 0 for a response without; undefined if that is not said. */
  readonly length: number | undefined
}

/** @throws {StreamError} if the response is malformed */
export function responseParts({ fields: list, isWhole }: DecodedBlock, method: string): ResponseParts {
  if (!isWhole) throw malformed('too large a head')
  const status = statusOf(list)
  const raw: string[] = []
  const names: string[] = []
  let bytes = 0
  for (let i = 1; i < list.length; i++) {
    const field = list[i] as HeaderField
    checkField(field)
    const { name, value } = field
    bytes += name.length + value.length + LINE_BYTES
    raw.push(name, value)
    names.push(name)
  }
  if (bytes > MAX_RESPONSE_HEAD) throw malformed('too large a head')
  const head = {
    status,
    reason: STATUS_CODES[status] ?? '',
    version: '1.1' as const,
    fields: new Fields(raw, names),
  }
  const framing = asStreamError(() => responseFraming(head, method))
  return { head, length: framing.kind === 'close' ? undefined : framing.bytes }
}

/** The only pseudo-header field of a response, which comes first. */
function statusOf([first]: readonly HeaderField[]): number {
  if (first?.kind !== ':status' || !STATUS.test(first.value)) throw malformed('the status')
  return Number(first.value)
}
