/** Whom to tell that a quota is being used up. Every folder may import it. */
import type { Hidden } from './hidden.js'

/** `notify` of a quota, as it is after validation. */
export interface Notify {
  /** Shares of the quota in per cent. */
  readonly at: readonly number[]
  /** Where the calls go. */
  readonly url: Hidden
  /** Signs the calls. */
  readonly secret: Hidden
}

/** `80%, 100% to https://hooks.example.com/…`. */
export function notifyText({ at, url }: Notify): string {
  return `${at.map(percent => `${percent}%`).join(', ')} to ${url.shown}`
}
