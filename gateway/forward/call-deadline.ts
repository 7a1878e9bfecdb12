import type { Deadlines, Timed } from '../http1/deadlines.js'
import type { RequestHead } from '../message.js'
import { grpcTimeoutMs } from './grpc.js'

/** When a call of gRPC is over, unless its response has begun. */
export class CallDeadline implements Timed {
  readonly deadline: number
  readonly #deadlines: Deadlines
  readonly #onOver: () => void

  constructor(ms: number, deadlines: Deadlines, onOver: () => void) {
    this.deadline = deadlines.now() + ms
    this.#deadlines = deadlines
    this.#onOver = onOver
    deadlines.add(this)
  }

  onDeadline(): void {
    this.#onOver()
  }

  end(): void {
    this.#deadlines.delete(this)
  }
}

/** Undefined for a request that has no deadline. */
export function callDeadline(
  request: Pick<RequestHead, 'version' | 'fields'>,
  deadlines: Deadlines,
  onOver: () => void,
): CallDeadline | undefined {
  const ms = grpcTimeoutMs(request)
  return ms === undefined ? undefined : new CallDeadline(ms, deadlines, onOver)
}
