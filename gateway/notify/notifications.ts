/** What the processes that take requests need in order to notify. */

/** A signed call that is to be made. Plain data. */
export interface Notification {
  /** The same however often the call is made. */
  readonly id: string
  readonly url: string
  readonly secret: string
  readonly body: string
}

export interface Notifications {
  /**
   * Claims a notification for `ms`: true for the first that asks for it, of all gateways that share a Redis. Whoever
   * asks later extends the claim. Never rejects.
   */
  claim(name: string, ms: number): Promise<boolean>
  /** Lets a claim end after `ms`, unless it is asked for again. */
  shorten(name: string, ms: number): void
  send(notification: Notification): void
}
