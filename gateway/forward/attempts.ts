import type { Backend, Waiting } from './backend.js'
import type { Backends } from './backends.js'

/** Where one request is tried: its backend, its place there, and where it may go on when that one fails. */
export class Attempts implements Waiting {
  readonly #backends: Backends
  readonly #request: Waiting
  readonly #patienceMs: number
  #backend: Backend | undefined
  #tried: Set<Backend> | undefined
  #holdsPlace = false
  /** No further backend is tried from then on; 0 until the first has failed. */
  #until = 0

  /** Tries further backends for `patienceMs`; `request` hears when its turn comes. */
  constructor(backends: Backends, patienceMs: number, request: Waiting) {
    this.#backends = backends
    this.#patienceMs = patienceMs
    this.#request = request
  }

  /** The one being tried; only between `enter` and `leave`. */
  get backend(): Backend {
    return this.#backend as Backend
  }

  /** Takes a place: at once, or later, which `request` is told of; or none is left to wait for. */
  enter(): 'admitted' | 'waiting' | 'full' {
    this.#backend ??= this.#backends.choose()
    this.#holdsPlace = this.#backend.enter()
    if (this.#holdsPlace) return 'admitted'
    return this.#backend.wait(this) ? 'waiting' : 'full'
  }

  go(): void {
    this.#holdsPlace = true
    this.#request.go()
  }

  /** True when it was waiting, and now no longer is. */
  stopWaiting(): boolean {
    return this.#backend?.stopWaiting(this) ?? false
  }

  /** Changes to another backend, whose `enter` must then be called; false if none is left. */
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
    if (this.#holdsPlace) this.backend.leave()
    this.#holdsPlace = false
  }
}
