/** What a limiter wants counted. Types only. */
import type { Algorithm, CalendarUnit } from '../config/words/words.js'
import type { MadeOfDemand } from './compiled-rule.js'

/** Calendar periods, which begin and end by the local time of a time zone, daylight saving time included. */
export interface Calendar {
  readonly unit: CalendarUnit
  /** A name of the IANA time zone database. */
  readonly timezone: string
}

/** A length of time with a quota. */
export interface Window {
  /** Such as `burst` or `sustained`; in responses the policy is called `<rule>.<window>`. */
  readonly name: string
  readonly quota: number
  /** Length in ms; for a calendar window at least that of its longest period. */
  readonly ms: number
  /** For rolling windows; a calendar window counts by its periods. */
  readonly algorithm: Algorithm
  readonly calendar?: Calendar | undefined
  /** True if it never begins anew: its quota and the credit given to it are all that it ever admits. */
  readonly lifetime?: boolean | undefined
}

/** What a limiter wants counted. The demands of a request are granted together, or none is. */
export type Demand =
  | {
      readonly kind: 'windows'
      readonly windows: readonly Window[]
      /** An instance may lease tokens in advance and spend them locally. */
      readonly lease: boolean
      /** What this request spends in each window; a whole number, 1 when left out. */
      readonly cost?: number | undefined
      /** The gateway's own: see `compiledDemand`. */
      readonly made?: MadeOfDemand | undefined
    }
  | {
      readonly kind: 'slots'
      readonly max: number
      readonly ttlMs: number
      /** The slot is released after this time even if the request goes on. Absent: only with the end of the request. */
      readonly maxHoldMs?: number | undefined
      /** How long an upgrade holds the slot. Default: for the handshake. */
      readonly count?: 'handshake' | 'lifetime' | undefined
    }
  | MeterDemand

/**
 * A window that begins with the first request of a key and ends as a whole. A request beyond the quota may block the
 * key for longer. Counts admitted requests and the first refused one.
 */
export interface MeterDemand {
  readonly kind: 'meter'
  /** What one key may spend in the window. */
  readonly quota: number
  /** Length of the window in milliseconds. */
  readonly ms: number
  /** A key that exceeds its quota is refused for at least this long, in ms; 0 means until its window ends. */
  readonly blockMs: number
  /** What this request spends; a whole number, 1 when left out. */
  readonly cost?: number | undefined
  /**
   * Determines from the upstream's response what this request spends, in units from 0 to 1,000,000,000. The request is
   * admitted while one unit is left, and charged when the response begins, at most up to the quota.
   */
  readonly afterAnswer?: ((answer: UpstreamAnswer) => number) | undefined
  /** True when clients must not learn the numbers: refusals then have the code `abnormal-usage`. */
  readonly hidden?: boolean | undefined
}

/** The fields of an upstream's response, by lower-case name. */
export interface AnswerFields {
  get(name: string): string | undefined
}

/** The head of an upstream's response. */
export interface UpstreamAnswer {
  /** 0 if the client left before the response. */
  readonly status: number
  /** A header's value by lower-case name; repeated headers are joined with `, `. */
  header(name: string): string | undefined
}
