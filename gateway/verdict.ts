/** The decision on a request, and what is known once it has finished. Types only. */
import type { AnswerFields, Calendar } from './demand.js'
import type { CredentialCheck, Facts, Project, Rule } from './types.js'

/** What counted: Redis, tokens leased from Redis, memory by configuration, memory while Redis is away, or nothing. */
export type StoreName = 'redis' | 'lease' | 'memory' | 'local' | 'none'

/** One policy's state after the decision. */
export interface Reading {
  /** Name in responses: `<bucket>.burst`, or the rule's id for slots. */
  readonly policy: string
  /** The quota in effect: the whole one, or this instance's share of it while Redis is away. */
  readonly quota: number
  /**
   * Window length in ms, for a calendar window that of the current period; absent for slots (concurrent requests) and
   * lifetime windows.
   */
  readonly windowMs?: number | undefined
  /** Set for a calendar window. */
  readonly calendar?: Calendar | undefined
  /** True for a window that never begins anew. It has no length, and `resetMs` means nothing. */
  readonly lifetime?: boolean | undefined
  /** How much of the quota of a lifetime window was given as credit; absent if nothing could be counted. */
  readonly credit?: number | undefined
  /** Spent so far, including this request if it was admitted. Absent if nothing could be counted. */
  readonly used: number | undefined
  /** What is left of `quota`. */
  readonly left: number | undefined
  /** What the request spends, if not 1; 0 if only the response determines it. */
  readonly cost?: number | undefined
  /** Ms until more quota is available; on refusal until this request could pass. */
  readonly resetMs: number
  readonly violated: boolean
  /** Its numbers appear in decision records only, because a client that knew them could stay just below the limit. */
  readonly hidden?: boolean | undefined
}

/** The result of one rule. */
export interface Outcome {
  readonly rule: Rule
  readonly route: string
  /** The key that was counted by; hashed before it reaches a log. */
  readonly key: string
  readonly result: 'allowed' | 'limited' | 'unavailable'
  readonly store: StoreName
  readonly readings: readonly Reading[]
  /** What the request has cost, once its response has told; only where that settles what was reserved. */
  spent?: number
}

/** The results of all rules for a request. */
export interface Judgement {
  readonly allowed: boolean
  readonly outcomes: readonly Outcome[]
  readonly reportOnly: readonly Outcome[]
  /** Its enforced bucket, if that has no limit: the upstream's rate-limit fields are then removed too. */
  readonly unlimited?: string | undefined
}

/** The decision on a request. Report-only outcomes are separate and never make `allowed` false. */
export interface Verdict extends Judgement {
  /** Resolves when every report-only rule has been counted; undefined if that is already the case. Never rejects. */
  readonly settled: Promise<void> | undefined
  /** How long the request waited for its rules to have room; undefined if it did not. */
  readonly waitedMs?: number | undefined
  /** True while the request holds a slot of an enforced in-flight rule. */
  readonly holdsSlot: boolean
  /** The upstream has responded, or never will: charges the costs that depend on it. Not awaited. */
  answered(status: number, fields: AnswerFields): void
  /** The upgrade was accepted: releases the slots that are held for the handshake only. */
  upgraded(): void
  /** The request was sent to an upstream, whose part has ended. `tail` is the end of the response, if it was watched. */
  ended(tail: AnswerTail | undefined): void
  /** Releases every slot, and settles what was reserved: for nothing without `ended`. Safe to call more than once. */
  release(): void
}

/** The last bytes of a response, kept while it passes. */
export interface AnswerTail {
  add(chunk: Uint8Array): void
  /** All of the response has passed. */
  complete(): void
  readonly isComplete: boolean
  /** True if the tail is all of the response. */
  readonly isWhole: boolean
  text(): string
}

/** How many of the messages at the front of a WebSocket may go on. */
export interface Admission {
  readonly admitted: number
  /** Ms until there may be room for the next one; undefined if that is not known, or all were admitted. */
  readonly waitMs?: number | undefined
}

/** Decides about the messages that the client of one WebSocket sends. One question at a time. */
export interface MessageGate {
  /**
   * Counts as many of the next `count` messages as there is room for. Never rejects.
   *
   * @param isLast the message at the front waits no longer, not even for its turn
   */
  admit(count: number, isLast: boolean): Admission | Promise<Admission>
  /** The message at the front is refused for good, and with it the WebSocket. Says why. */
  refuse(): 'limited' | 'unavailable'
  /** Set by who asks: called when there may be room before the time that an admission has named. */
  onTurn?: (() => void) | undefined
  /** Nothing more is asked: the WebSocket ends. */
  leave(): void
}

/** What became of the messages of one WebSocket under one rule, in the mode of `outcome`. */
export interface MessageTotals {
  /** That of the last message; once one was refused, that of the last refused one. */
  readonly outcome: Outcome
  readonly admitted: number
  /** In report-only mode those that would have been. */
  readonly refused: number
}

/** Where the client's response came from. */
export type AnswerSource = 'upstream' | 'gateway'

/** What an observer gets about a finished request. */
export interface Finished {
  /** Request id, as in `X-Request-Id` of the response. */
  readonly id: string
  readonly method: string
  /** Undefined if the request was too malformed. */
  readonly facts: Facts | undefined
  readonly project: Project | undefined
  /** Undefined if nobody was asked who is calling. */
  readonly credential?: CredentialCheck | undefined
  /** Why the credential was found wrong, in a word or two. */
  readonly credentialFault?: string | undefined
  /** The identifier that found the project, or else the one that looked at the credential. */
  readonly identifier?: string | undefined
  readonly upstream: string
  /** The upstream address that was tried last; '' if none was. */
  readonly address: string
  readonly verdict: Judgement | undefined
  /** Of a WebSocket, by rule that counts messages; absent if none has counted any. */
  readonly messages?: readonly MessageTotals[] | undefined
  /** Revision of the policy that the request was decided by. */
  readonly revision: string
  /** Status sent to the client; 0 if the client left before. */
  readonly status: number
  readonly source: AnswerSource
  /** Code of our own refusal or error, or `answer-cut` if the response was cut after it had begun; else undefined. */
  readonly error?: string | undefined
  /** The cause of `error`, in words for the log. */
  readonly cause?: string | undefined
  /** Bytes of the request body received, and of the response body written; for a WebSocket all bytes each way. */
  readonly bytesIn: number
  readonly bytesOut: number
  /** Wall-clock start, ms since the epoch. */
  readonly startedAt: number
  readonly durationMs: number
  /** Ms until the head of the upstream's response, or until it was given up; undefined if no upstream was tried. */
  readonly upstreamMs: number | undefined
  /** Time that the request waited for its rules to have room; undefined if it did not. */
  readonly waitedMs?: number | undefined
  /** Time spent on the decision, without that, in microseconds. */
  readonly limiterUs: number
}
