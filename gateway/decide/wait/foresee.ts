/** Whether there will be room in time for a request that queues behind others. */
import type { Answer } from '../store/store.js'
import type { WaitQueue } from './wait-queue.js'
import type { Waiter } from './waiter.js'

/**
 * Looks at the windows of each queue that it is in, with all that those before it ask for; calls `refuse` if there is no
 * room by the end of its wait. Without an answer the request just waits.
 */
export function foresee(waiter: Waiter, now: () => number, refuse: () => void): void {
  const judge = (queue: WaitQueue, answer: Answer | undefined) => {
    if (waiter.state !== 'waiting' || !waiter.queues.has(queue) || answer === undefined) return
    const resets = answer.counts.map(({ violated, resetMs }) => (violated ? resetMs : 0))
    const roomAt = now() + Math.max(0, ...resets)
    if (roomAt <= waiter.until) return
    queue.noRoomBefore(roomAt, waiter, now())
    refuse()
  }
  for (const queue of [...waiter.queues]) {
    const seen = waiter.look(queue.questionIn(waiter.questions), queue.unitsUpTo(waiter))
    if (seen instanceof Promise) seen.then(answer => judge(queue, answer)).catch(() => {})
    else judge(queue, seen)
  }
}
