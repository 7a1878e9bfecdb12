/** Limits of a pull from its provider. All times in ms. */
export interface Bounds {
  /** From the request to the end of the response. */
  readonly answerMs: number
  readonly answerBytes: number
  /** Attempts at one request. */
  readonly attempts: number
  /** Wait before the second attempt; doubles from there. */
  readonly firstWaitMs: number
  /** A provider that asks for a longer wait is not called again before the next pull. */
  readonly longestWaitMs: number
  /** For reading one whole directory. */
  readonly readMs: number
  /** Pages of one list. */
  readonly pages: number
  readonly users: number
  readonly groups: number
  readonly memberships: number
}

export const bounds: Bounds = {
  answerMs: 30_000,
  answerBytes: 8 * 1024 * 1024,
  attempts: 5,
  firstWaitMs: 500,
  longestWaitMs: 60_000,
  readMs: 60 * 60_000,
  pages: 5_000,
  users: 200_000,
  groups: 50_000,
  memberships: 1_000_000,
}
