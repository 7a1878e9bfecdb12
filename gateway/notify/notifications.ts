/** What the processes that take requests need in order to notify. */
import type { Delivery } from '../../webhooks/deliveries.js'

/** A signed call that is to be made. Plain data. */
export type Notification = Delivery

export interface Notifications {
  /**
   * Claims a notification for `ms`: true for the first that asks for it, of all gateways that share a Redis. Whoever
   * asks later extends the claim. Never rejects.
   */
  claim(name: string, ms: number): Promise<boolean>
  /** Lets a claim end after `ms`, unless it is asked for again. */
  shorten(name: string, ms: number): void
  /** Resolves once the call waits to be made. Never rejects. */
  send(notification: Notification): Promise<void>
}
