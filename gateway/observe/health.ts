/** Readiness of this process. */

export type Readiness = { readonly ready: true } | { readonly ready: false; readonly reason: string }

/** Starts unready; a process that can answer at all is alive, so liveness needs no state. */
export class Health {
  readonly #trouble: () => string | undefined
  #isDraining = false
  #readiness: Readiness = { ready: false, reason: 'starting: the listeners are not up yet' }

  /** `trouble` says why a gateway that has started takes no requests just now. */
  constructor(trouble: () => string | undefined = () => undefined) {
    this.#trouble = trouble
  }

  /** The configuration is loaded and the listeners are up. Has no effect on a process that is draining. */
  ready(): void {
    if (!this.#isDraining) this.#readiness = { ready: true }
  }

  /** No new requests from now on: the process is about to end. */
  draining(): void {
    this.#isDraining = true
    this.#readiness = { ready: false, reason: 'draining: finishing the requests under way' }
  }

  get readiness(): Readiness {
    const reason = this.#readiness.ready ? this.#trouble() : undefined
    return reason === undefined ? this.#readiness : { ready: false, reason }
  }
}
