import type { Timed } from '../http1/deadlines.js'
import type { Backend } from './backend.js'
import type { Occupant } from './backend-queue.js'
import type { Backends } from './backends.js'
import type { Timeouts } from './transport.js'

/** A request that is tried at one backend after another. */
export interface Attempting extends Occupant {
  /** It has waited `connectMs` for a place in vain. */
  onNoPlace(): void
}

/** The attempts of one request: its current backend, its place there, and the backends left when that one fails. */
export class Attempts implements Occupant, Timed {
  /** When the wait for a place is given up. */
  deadline = Number.POSITIVE_INFINITY
  readonly #backends: Backends
  readonly #request: Attempting
  readonly #timeouts: Pick<Timeouts, 'connectMs' | 'headMs'>
  #backend: Backend | undefined
  #tried: Set<Backend> | undefined
  #holdsPlace = false
  #isWaiting = false
  /** When to stop trying further backends; 0 until the first has failed. */
  #until = 0

  /** Tries further backends for `headMs`; calls `request.go` when a place becomes free. */
  constructor(backends: Backends, timeouts: Pick<Timeouts, 'connectMs' | 'headMs'>, request: Attempting) {
    this.#backends = backends
    this.#timeouts = timeouts
    this.#request = request
  }

  /** The current backend; only between `enter` and `leave`. */
  get backend(): Backend {
    return this.#backend as Backend
  }

  /** Takes a place: at once ('admitted'), or later ('waiting', then `go`). 'full' if the queue has no room either. */
  enter(): 'admitted' | 'waiting' | 'full' {
    this.#backend ??= this.#backends.choose()
    const entry = this.#backend.places.enter(this)
    this.#holdsPlace = entry === 'admitted'
    if (entry === 'waiting') {
      const { deadlines } = this.#backends
      this.#isWaiting = true
      this.deadline = deadlines.now() + this.#timeouts.connectMs
      deadlines.add(this)
    }
    return entry
  }

  /** True while the request waits for a place. */
  get isWaiting(): boolean {
    return this.#isWaiting
  }

  onDeadline(): void {
    this.#request.onNoPlace()
  }

  get client(): string {
    return this.#request.client
  }

  get waitsSince(): number | undefined {
    return this.#request.waitsSince
  }

  giveWay(): void {
    this.#request.giveWay()
  }

  go(): void {
    this.#noLongerWaits()
    this.#holdsPlace = true
    this.#request.go()
  }

  /** Leaves the queue; false if the request was not waiting. */
  stopWaiting(): boolean {
    return this.#backend?.places.stopWaiting(this) ?? false
  }

  /** True if there is another backend to try, and time. */
  get canMoveOn(): boolean {
    const isInTime = this.#until === 0 || performance.now() < this.#until
    return isInTime && this.#backends.hasOther(this.backend, this.#tried)
  }

  /** Switches to another backend; call `enter` next. False if none is left. */
  moveOn(): boolean {
    const now = performance.now()
    if (this.#until === 0) this.#until = now + this.#timeouts.headMs
    this.#tried ??= new Set()
    this.#tried.add(this.backend)
    const next = now < this.#until ? this.#backends.chooseAfter(this.#tried) : undefined
    if (next === undefined) return false
    this.leave()
    this.#backend = next
    return true
  }

  /** Gives the place back, and no longer waits for one. */
  leave(): void {
    this.#noLongerWaits()
    if (this.#holdsPlace) this.backend.places.leave(this)
    this.#holdsPlace = false
  }

  #noLongerWaits(): void {
    if (!this.#isWaiting) return
    this.#isWaiting = false
    this.#backends.deadlines.delete(this)
  }
}
