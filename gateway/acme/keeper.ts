/** Sees to it that there is a certificate: orders it, renews it in time, and takes over what other gateways have ordered. */
import { X509Certificate } from 'node:crypto'
import { LockWatch } from '../../config/file-lock.js'
import { reasonOf } from '../../config/files.js'
import type { Log } from '../types.js'
import { type ChallengeKind, Challenges } from './challenges.js'
import { faultOf } from './check.js'
import { CertificateFolder, type StoredCertificate } from './folder.js'
import { HeldLock } from './held-lock.js'

export interface AcmeSettings {
  readonly domains: readonly string[]
  readonly email: string | undefined
  readonly directory: string
  /** In PEM form; default: the well-known authorities. */
  readonly ca: string | undefined
  readonly folder: string
}

export interface KeeperOptions {
  readonly settings: AcmeSettings
  /** The first that succeeds is enough. */
  readonly kinds: readonly ChallengeKind[]
  /** Serves this certificate from now on. */
  install(certificate: StoredCertificate): Promise<void>
  readonly log: Log
  /** For tests. */
  readonly times?: typeof TIMES
}

/** As `/state` reports it. */
export interface CertificateState {
  readonly domains: readonly string[]
  /** Of the certificate in force; null while there is none. */
  readonly expires: Date | null
  /** When it is to be renewed; null while there is none that can be. */
  readonly renews: Date | null
  /** Why the last order failed; null if it did not. */
  readonly failure: string | null
  /** When the next order follows such a failure. */
  readonly retries: Date | null
}

const MINUTE = 60_000
/** In ms. */
const TIMES = {
  /** How often the folder is looked at. */
  look: 5_000,
  /** The longest that an order may take. */
  order: 5 * MINUTE,
  /** When a lock counts as abandoned: longer than a busy machine or a slow file server delays a refresh. */
  stale: 30_000,
  /** The first and the longest pause after a failure. */
  first: MINUTE,
  longest: 360 * MINUTE,
}
/** The rest of the lifetime is for failures. */
const RENEWED_AFTER = 2 / 3
/** The share of the lifetime by which gateways spread their renewals, and that of a pause. */
const JITTER = 0.05

export class CertificateKeeper {
  /** How many have ended, by result. */
  readonly orders = { issued: 0, failed: 0 }
  readonly #options: KeeperOptions
  readonly #folder: CertificateFolder
  readonly #challenges: Challenges
  readonly #lock: LockWatch
  readonly #times: typeof TIMES
  readonly #end = new AbortController()
  readonly #jitter = Math.random() * JITTER
  #current: StoredCertificate | undefined
  /** False while the current one is a substitute: for other domains, or of another authority. */
  #isOurs = false
  #failures = 0
  #failure: string | undefined
  #retryAt = 0
  /** Another gateway has the lock. */
  #waits = false
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> = Promise.resolve()

  constructor(options: KeeperOptions) {
    const { folder, directory, domains } = options.settings
    this.#options = options
    this.#folder = new CertificateFolder(folder, directory, domains)
    this.#challenges = new Challenges(folder)
    this.#times = options.times ?? TIMES
    this.#lock = new LockWatch(this.#folder.lock, this.#times.stale)
  }

  /** The certificate that is there already, for the start; undefined if there is none. */
  async stored(): Promise<StoredCertificate | undefined> {
    const own = await this.#folder.read()
    this.#isOurs = own !== undefined
    this.#current = own ?? (await this.#folder.readOther())
    return this.#current
  }

  get state(): CertificateState {
    const current = this.#current && new X509Certificate(this.#current.cert)
    const hasFailed = this.#failure !== undefined
    return {
      domains: this.#options.settings.domains,
      expires: current ? new Date(current.validTo) : null,
      renews: current && this.#isOurs ? new Date(this.#renewalOf(current)) : null,
      failure: this.#failure ?? null,
      retries: hasFailed ? new Date(this.#retryAt) : null,
    }
  }

  /** From now on, until `close`. */
  start(): void {
    this.#looking = this.#look()
      .catch(error => this.#failed(faultText(error)))
      .finally(() => {
        if (!this.#end.signal.aborted) this.#timer = setTimeout(() => this.start(), this.#times.look).unref()
      })
  }

  /** Gives up an order under way. */
  async close(): Promise<void> {
    this.#end.abort()
    clearTimeout(this.#timer)
    await this.#looking
  }

  async #look(): Promise<void> {
    await this.#adopt()
    if (!this.#isDue() || Date.now() < this.#retryAt) return
    await this.#folder.create()
    const held = this.#lock.tryLock()
    if (held === undefined) {
      this.#wait()
      return
    }
    const lock = new HeldLock(held, this.#end.signal)
    try {
      const hasWaited = this.#waits
      this.#waits = false
      await this.#adopt()
      if (!this.#isDue()) return
      // It has failed for the other one: to ask at once would be one attempt for each gateway.
      if (hasWaited && !this.#lock.tookAway)
        this.#postpone('another gateway that shares the folder has ordered in vain')
      else await this.#order(lock.signal)
    } finally {
      lock.release()
    }
  }

  #wait(): void {
    const { settings, log } = this.#options
    if (!this.#waits && this.#current === undefined) {
      log.info(
        { domains: settings.domains },
        'Another gateway that shares the folder orders a certificate, or was killed while it did: waiting for it',
      )
    }
    this.#waits = true
  }

  /** Serves what is in the folder, if that is another certificate. */
  async #adopt(): Promise<void> {
    const found = await this.#folder.read()
    if (found === undefined || (this.#isOurs && found.cert === this.#current?.cert)) return
    await this.#install(found)
  }

  async #install(certificate: StoredCertificate): Promise<void> {
    await this.#options.install(certificate)
    this.#current = certificate
    this.#isOurs = true
    this.#failures = 0
    this.#failure = undefined
    this.#retryAt = 0
  }

  #isDue(): boolean {
    if (this.#current === undefined || !this.#isOurs) return true
    return Date.now() >= this.#renewalOf(new X509Certificate(this.#current.cert))
  }

  #renewalOf({ validFrom, validTo }: X509Certificate): number {
    const [from, to] = [Date.parse(validFrom), Date.parse(validTo)]
    return from + (to - from) * (RENEWED_AFTER - this.#jitter)
  }

  async #order(held: AbortSignal): Promise<void> {
    const { settings, log } = this.#options
    const signal = AbortSignal.any([held, AbortSignal.timeout(this.#times.order)])
    const { directory, domains } = settings
    if (this.#current === undefined && this.#failures === 0) {
      log.info(
        { directory, domains },
        'Ordering a certificate: until there is one, TLS connections are refused',
      )
    }
    let stored: StoredCertificate
    try {
      const { cert, key } = await this.#issued(signal)
      const fault = faultOf({ cert, key }, domains)
      if (fault !== undefined) throw new Error(`has sent a certificate that ${fault}`)
      stored = await this.#folder.write(cert, key)
      this.orders.issued += 1
      const expires = new Date(new X509Certificate(cert).validTo)
      log.info({ directory, domains, expires }, 'A certificate was issued')
    } catch (error) {
      // The gateway ends, or another one has taken over.
      if (held.aborted) return
      this.orders.failed += 1
      this.#failed(faultText(error, `The authority ${new URL(directory).host}`))
      return
    }
    await this.#install(stored)
  }

  /** By the first kind of challenge that the authority can check. */
  async #issued(signal: AbortSignal): Promise<{ cert: string; key: string }> {
    const { settings, kinds } = this.#options
    // Only who orders certificates needs its packages.
    const { newKey, orderCertificate, OrderFailure } = await import('./authority.js')
    const known = await this.#folder.readAccountKey()
    const accountKey = known ?? (await newKey())
    if (known === undefined) await this.#folder.writeAccountKey(accountKey)
    const failures: string[] = []
    for (const kind of kinds) {
      const key = await newKey()
      const order = { ...settings, kind, accountKey, challenges: this.#challenges, signal }
      try {
        return { cert: await orderCertificate(order, key), key }
      } catch (error) {
        if (!(error instanceof OrderFailure && error.isChallenge)) throw error
        failures.push(error.message)
      }
    }
    throw new OrderFailure(failures.join(', and '))
  }

  #failed(reason: string): void {
    const retries = this.#postpone(reason)
    const expires = this.state.expires
    const { domains } = this.#options.settings
    this.#options.log.error(
      { domains, reason, expires, retries },
      `No certificate was issued: ${consequenceOf(expires)}`,
    )
  }

  /** The next order follows after a pause, twice as long as the one before. */
  #postpone(reason: string): Date {
    const { first, longest } = this.#times
    const pause = Math.min(first * 2 ** this.#failures, longest)
    this.#failures += 1
    this.#failure = reason
    this.#retryAt = Date.now() + pause * (1 + Math.random() * JITTER)
    return new Date(this.#retryAt)
  }
}

/** A sentence; `subject` begins it where the error is about the authority. */
function faultText(error: unknown, subject = ''): string {
  const { code, path, message } = error as NodeJS.ErrnoException
  if (code !== undefined && path !== undefined) return `${path} cannot be written: ${reasonOf(error)}.`
  return `${subject} ${message.replace(/[.]$/, '')}.`.trim()
}

function consequenceOf(expires: Date | null): string {
  if (expires === null) return 'there is none: TLS connections are refused'
  if (expires.getTime() > Date.now()) return 'the previous one stays in use'
  return 'the previous one stays in use although it has ended, and clients that check it refuse to connect'
}
