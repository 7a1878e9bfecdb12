/** Claims and sends the notifications of a gateway, in the process that its workers share. */
import { Deliveries, type Delivery } from '../../webhooks/deliveries.js'
import { createPoster } from '../../webhooks/post.js'
import type { TargetRules } from '../../webhooks/target.js'
import { SideConnection } from '../decide/redis/side-connection.js'
import type { Log } from '../types.js'
import { Claims } from './claims.js'
import type { Notification, Notifications } from './notifications.js'

/** At most one line about failures in this time; the metric counts them all. */
const QUIET_MS = 60_000

export interface SenderOptions {
  /** Address of Redis; '' for none. */
  readonly redis: string
  /** Where calls may go. */
  readonly targets: TargetRules
  readonly log: Log
}

/** What became of the attempts and calls so far. */
export type NotificationCounts = Readonly<Record<'sent' | 'failed' | 'dropped', number>>

export class NotificationSender implements Notifications {
  readonly counts = { sent: 0, failed: 0, dropped: 0 }
  readonly #log: Log
  readonly #redis: SideConnection | undefined
  readonly #claims: Claims
  readonly #deliveries: Deliveries
  readonly #quietUntil = { failed: 0, dropped: 0 }

  constructor({ redis, targets, log }: SenderOptions) {
    this.#log = log
    this.#redis = redis === '' ? undefined : new SideConnection(redis, log)
    this.#claims = new Claims(this.#redis, log)
    this.#deliveries = new Deliveries({
      poster: createPoster(targets),
      sent: () => {
        this.counts.sent += 1
      },
      failed: (delivery, problem) => this.#report('failed', delivery, problem),
      dropped: (delivery, why) => this.#report('dropped', delivery, why),
    })
  }

  claim(name: string, ms: number): Promise<boolean> {
    return this.#claims.claim(name, ms)
  }

  shorten(name: string, ms: number): void {
    this.#claims.shorten(name, ms)
  }

  async send(notification: Notification): Promise<void> {
    this.#deliveries.add(notification)
  }

  /** Sends what waits, for at most two seconds. */
  async close(): Promise<void> {
    await this.#deliveries.close()
    this.#redis?.close()
  }

  /** The address without its path, which may hold a token. */
  #report(what: 'failed' | 'dropped', { id, url }: Delivery, problem: string): void {
    this.counts[what] += 1
    const now = Date.now()
    if (now < this.#quietUntil[what]) return
    this.#quietUntil[what] = now + QUIET_MS
    this.#log.warn({ notification: id, to: new URL(url).origin, problem }, MESSAGES[what])
  }
}

const MESSAGES = {
  failed: 'A quota notification was not delivered: it is tried again (at most one such line a minute)',
  dropped: 'A quota notification is dropped (at most one such line a minute)',
}
