import type { Backend } from './backend.js'
import type { Occupant } from './backend-queue.js'
import type { Backends } from './backends.js'

/** The attempts of one request: its current backend, its place there, and the backends left when that one fails. */
export class Attempts implements Occupant {
  readonly #backends: Backends
  readonly #request: Occupant
  readonly #patienceMs: number
  #backend: Backend | undefined
  #tried: Set<Backend> | undefined
  #holdsPlace = false
  /** When to stop trying further backends; 0 until the first has failed. */
  #until = 0

  /** Tries further backends for `patienceMs`; calls `request.go` when a place becomes free. */
  constructor(backends: Backends, patienceMs: number, request: Occupant) {
    this.#backends = backends
    this.#patienceMs = patienceMs
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
    return entry
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
    this.#holdsPlace = true
    this.#request.go()
  }

  /** Leaves the queue; false if the request was not waiting. */
  stopWaiting(): boolean {
    return this.#backend?.places.stopWaiting(this) ?? false
  }

  /** Switches to another backend; call `enter` next. False if none is left. */
  moveOn(): boolean {
    const now = performance.now()
    if (this.#until === 0) this.#until = now + this.#patienceMs
    this.#tried ??= new Set()
    this.#tried.add(this.backend)
    const next = now < this.#until ? this.#backends.chooseAfter(this.#tried) : undefined
    if (next === undefined) return false
    this.leave()
    this.#backend = next
    return true
  }

  /** Gives the place back. */
  leave(): void {
    if (this.#holdsPlace) this.backend.places.leave(this)
    this.#holdsPlace = false
  }
}
