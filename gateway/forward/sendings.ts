import type { RetryReason } from '../../config/words/words.js'
import { isIdempotent, isSafe } from './failure.js'
import type { Retries } from './retries.js'
import type { Upload } from './upload.js'

/** How often one request was sent, and whether it may be sent again. */
export class Sendings {
  readonly #retries: Retries
  readonly #method: string
  readonly #upload: Upload | undefined
  /** At one address or several. */
  #count = 0
  /** The request has reached an upstream, and was sent again. */
  #isRepeated = false

  constructor(retries: Retries, method: string, upload: Upload | undefined) {
    this.#retries = retries
    this.#method = method
    this.#upload = upload
    retries.begin()
  }

  /** True if the configuration says when to send again. */
  get isConfigured(): boolean {
    return this.#retries.isSet
  }

  /** True if the request may be sent again although the upstream may have handled it. */
  get mayRepeat(): boolean {
    if (this.#retries.isSet) return isIdempotent(this.#method) && this.#upload?.begun !== true
    return isSafe(this.#method) && this.#upload === undefined && !this.#isRepeated
  }

  /** True if it may be sent to the same address, which has not looked at it. */
  get mayAskAgain(): boolean {
    return !this.#isRepeated
  }

  /** The request is sent to an address. */
  counted(): void {
    this.#count += 1
  }

  /** The upstream may have had it already. */
  repeated(): void {
    this.#isRepeated = true
  }

  /** True if this reason allows one more, apart from the budget. */
  covers(reason: RetryReason): boolean {
    return this.#retries.covers(reason, this.#count)
  }

  /** Takes one more from the budget; false if there is none left. */
  take(reason: RetryReason): boolean {
    return this.#retries.take(reason)
  }
}
