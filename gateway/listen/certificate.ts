/** The served certificate, which can be reloaded from its files. */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import type { Log } from '../types.js'

/** Paths of PEM files. */
export interface CertificateFiles {
  readonly cert: string
  readonly key: string
  /** The authorities that issue clients' certificates; absent if none are asked for. */
  readonly clientCa?: string | undefined
}

export interface CertificatePair {
  readonly cert: Buffer
  readonly key: Buffer
  readonly ca?: Buffer | undefined
}

/** Passes a certificate and its key to `use`: at once, and on `reload` if their files have changed. */
export class Certificate {
  readonly #files: CertificateFiles
  readonly #log: Log
  readonly #use: (pair: CertificatePair) => void
  #served: CertificatePair

  /** Throws when the pair cannot be used. */
  constructor(files: CertificateFiles, log: Log, use: (pair: CertificatePair) => void) {
    this.#files = files
    this.#log = log
    this.#use = use
    this.#served = readPair(files)
    use(this.#served)
  }

  /** Reads the files again. A pair that cannot be used is logged, and the old one stays in use. */
  reload(): void {
    const { cert, key } = this.#files
    try {
      const pair = readPair(this.#files)
      if (isDeepStrictEqual(pair, this.#served)) return
      this.#use(pair)
      this.#served = pair
      const { validTo } = new X509Certificate(pair.cert)
      this.#log.info({ cert, validTo }, 'Certificate reloaded: new connections use it')
    } catch (error) {
      const reason = (error as Error).message
      this.#log.error({ cert, key, reason }, 'Certificate refused: the previous one stays in use')
    }
  }
}

function readPair(files: CertificateFiles): CertificatePair {
  const { cert, key, clientCa } = files
  const ca = clientCa === undefined ? undefined : readFileSync(clientCa)
  const pair = { cert: readFileSync(cert), key: readFileSync(key), ca }
  // Throws if certificate and key do not match.
  createSecureContext(pair)
  return pair
}
