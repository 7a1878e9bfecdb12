/** The served certificate, which can be replaced while connections are open. */
import { X509Certificate } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Log } from '../types.js'

/** In PEM form, with the path of the certificate for the log. */
export interface CertificatePair {
  readonly file: string
  readonly cert: string
  readonly key: string
  /** The authorities that issue clients' certificates; absent if none are asked for. */
  readonly ca?: string | undefined
}

/** Passes a certificate and its key to `use`: at once, and when they are replaced by others. */
export class Certificate {
  readonly #log: Log
  readonly #use: (pair: CertificatePair) => void
  #served: CertificatePair | undefined

  /** @param first undefined while there is none. Throws when the pair cannot be used. */
  constructor(first: CertificatePair | undefined, log: Log, use: (pair: CertificatePair) => void) {
    this.#log = log
    this.#use = use
    this.#served = first
    if (first !== undefined) use(first)
  }

  get isThere(): boolean {
    return this.#served !== undefined
  }

  /** A pair that cannot be used is logged, and the old one stays in use. */
  replace(pair: CertificatePair): void {
    if (isDeepStrictEqual(pair, this.#served)) return
    const { file: cert } = pair
    try {
      this.#use(pair)
      this.#served = pair
      const { validTo } = new X509Certificate(pair.cert)
      this.#log.info({ cert, validTo }, 'Certificate reloaded: new connections use it')
    } catch (error) {
      const reason = (error as Error).message
      this.#log.error({ cert, reason }, 'Certificate refused: the previous one stays in use')
    }
  }
}
