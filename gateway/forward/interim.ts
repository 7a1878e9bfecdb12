import type { Socket } from 'node:net'
import type { InterimSender } from '../types.js'
import { answerFields } from './headers.js'
import type { Exchange } from './transport.js'

/** Where the reader of a connection stands. */
export interface ReadingState {
  /** True from the final head of an answer until the next request: what comes then is body. */
  answering: boolean
}

const HEAD_END = Buffer.from('\r\n\r\n')
const LONGEST_HEAD = 16 * 1024
const STATUS_AT = 9

/**
 * Hides every `100 Continue` on `socket` from its reader. Upstreams may send one unasked (RFC 9110 section
 * 15.2.1), and undici breaks the connection when they do. Other interim answers pass.
 */
export function hideContinue(socket: Socket, state: ReadingState): void {
  const read = socket.read.bind(socket)
  let held: Buffer | undefined

  socket.read = (size?: number): Buffer | null => {
    for (;;) {
      const chunk: Buffer | null = read(size)
      if (chunk === null || (held === undefined && (state.answering || !mayBeInterim(chunk)))) return chunk
      const { passed, rest } = withoutContinue(held === undefined ? chunk : Buffer.concat([held, chunk]))
      held = rest
      if (passed.length > 0) return passed
      // Nothing left of this chunk: only a read that finds the socket empty makes it tell of new bytes.
    }
  }
}

function mayBeInterim(bytes: Buffer): boolean {
  return bytes.length <= STATUS_AT || bytes[STATUS_AT] === 0x31
}

/** Cuts 100 heads from the start of `bytes`; `rest` is the beginning of an interim head still on its way. */
function withoutContinue(bytes: Buffer): { passed: Buffer; rest: Buffer | undefined } {
  const kept: Buffer[] = []
  let from = 0
  while (from < bytes.length && mayBeInterim(bytes.subarray(from))) {
    const end = bytes.indexOf(HEAD_END, from)
    if (end === -1) {
      const rest = bytes.subarray(from)
      if (rest.length > LONGEST_HEAD) break
      return { passed: Buffer.concat(kept), rest }
    }
    const head = bytes.subarray(from, end + HEAD_END.length)
    from += head.length
    if (head.toString('latin1', STATUS_AT, STATUS_AT + 3) !== '100') kept.push(head)
  }
  kept.push(bytes.subarray(from))
  return { passed: Buffer.concat(kept), rest: undefined }
}

/** Sends an interim answer on, such as 103 (RFC 9110 section 15.2), where the client can take it. */
export function relayInterim({ res }: Exchange, status: number, upstream: readonly string[]): void {
  if (sendsInterim(res)) res.sendInterim(status, answerFields(status, upstream, []))
}

function sendsInterim(res: object): res is InterimSender {
  return 'sendInterim' in res
}
