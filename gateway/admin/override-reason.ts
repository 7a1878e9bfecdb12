/** Who performs an override on the admin port, and why. */
import { NOT_BLANK } from './input.js'

export interface OverrideReason {
  readonly why?: string
  /** A name. Default: the address of the request. */
  readonly by?: string
}

export const WHY = {
  type: 'string',
  minLength: 1,
  pattern: NOT_BLANK,
  maxLength: 1000,
  description: 'The reason, shown in the log and in the list.',
} as const
export const BY = {
  type: 'string',
  minLength: 1,
  pattern: NOT_BLANK,
  maxLength: 256,
  description: 'Who asks for it. Default: the address of the request.',
} as const
/** `host:` and the longest name of a host; ids of configured projects are shorter. */
export const LONGEST_PROJECT = 258

export const UNTIL = {
  type: 'string',
  maxLength: 64,
  description: 'A day (to its end, UTC) or a moment as in RFC 3339. Then it is ignored.',
} as const
