/** Waiting instead of being refused: what a bucket or an in-flight rule says about it. Every folder may import it. */

/** How long requests of a rule may wait for it, and how many of them for one key. */
export interface Waits {
  readonly ms: number
  readonly most: number
}

/** The settings as they are written; `wait` in milliseconds. */
export interface WaitSettings {
  readonly wait?: number | undefined
  readonly waiting?: number | undefined
}

const USUAL_MOST = 100

/** Options of the settings in a schema. */
export const WAIT = {
  maximum: '10s',
  description:
    'A request over the limit that would be admitted within this time waits for it, first come first served for each key. Default: it is refused at once.',
}
export const WAITING = {
  minimum: 1,
  maximum: 10_000,
  description: `With wait: how many requests of one key may wait in each gateway process; further ones are refused at once. Default: ${USUAL_MOST}.`,
}

/** What a bucket or a rule says, after validation; undefined if its requests do not wait. */
export function waitsOf(written: object): Waits | undefined {
  const { wait, waiting = USUAL_MOST } = written as WaitSettings
  return wait === undefined ? undefined : { ms: wait, most: waiting }
}
