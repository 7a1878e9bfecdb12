/** What a request has cost, by its response. */
import type { ReservedCost } from '../../../config/words/reserve.js'
import type { UpstreamAnswer } from '../../demand.js'
import type { AnswerTail } from '../../verdict.js'
import { numberInEvents, numberInJson } from './answer-number.js'

/** A response that has ended, or broke off. */
export interface EndedAnswer extends UpstreamAnswer {
  /** Undefined if nobody asked for it. */
  readonly tail: AnswerTail | undefined
}

/** True if the response's body has to be watched. */
export function settlesByBody({ settle }: ReservedCost): boolean {
  return settle.jsonBody !== undefined || settle.sse !== undefined
}

/** The cost in units; undefined if the response has no number, is compressed, or broke off. */
export function spentBy({ settle }: ReservedCost, answer: EndedAnswer): number | undefined {
  const { answerHeader, jsonBody, sse } = settle
  const said = answerHeader === undefined ? undefined : answer.header(answerHeader)?.trim()
  if (said !== undefined && /^\d{1,16}$/.test(said) && Number.isSafeInteger(Number(said))) return Number(said)
  const { tail } = answer
  const encoding = answer.header('content-encoding')?.trim().toLowerCase() ?? 'identity'
  if (tail === undefined || !tail.isComplete || encoding !== 'identity') return undefined
  const streams = /^text\/event-stream\b/i.test(answer.header('content-type')?.trim() ?? '')
  const path = (streams ? sse : jsonBody)?.split('.')
  if (path === undefined) return undefined
  const end = { text: tail.text(), isWhole: tail.isWhole }
  return streams ? numberInEvents(end, path) : numberInJson(end, path)
}
