/** Orders a certificate from an authority (RFC 8555). */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Agent } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import acme from 'acme-client'
import { certificatesOf } from '../../config/checks/pem.js'
import type { ChallengeKind, Challenges } from './challenges.js'

export interface Order {
  /** https:// */
  readonly directory: string
  /** PEM of the authorities that the directory's own certificate is verified by; default: the well-known ones. */
  readonly ca: string | undefined
  readonly email: string | undefined
  readonly domains: readonly string[]
  /** In PEM form. */
  readonly accountKey: string
  /** How to show that the domains are ours. */
  readonly kind: ChallengeKind
  readonly challenges: Pick<Challenges, 'publish' | 'withdraw'>
  readonly signal: AbortSignal
}

/** The authority has refused the order, or answers nonsense; the message is the end of a sentence about it. */
export class OrderFailure extends Error {
  /** True if another kind of challenge may succeed. */
  readonly isChallenge: boolean

  constructor(message: string, { isChallenge = false } = {}) {
    super(message)
    this.isChallenge = isChallenge
  }
}

const REQUEST_MS = 20_000
const MOST_BYTES = 1024 * 1024
const FIRST_LOOK_MS = 500
const LONGEST_LOOK_MS = 10_000
/** What an authority says is logged: not more of it than this. */
const MOST_SAID = 300
type Response = Awaited<ReturnType<typeof acme.axios.request>>
type Challenge = acme.Authorization['challenges'][number]

const TOKEN = /^[\w-]{1,128}$/

const order = new AsyncLocalStorage<{ readonly signal: AbortSignal; readonly httpsAgent: Agent }>()
const { defaults, interceptors } = acme.axios
Object.assign(defaults, { timeout: REQUEST_MS, maxContentLength: MOST_BYTES, maxRedirects: 0, proxy: false })
interceptors.request.use(config => {
  if (!/^https:\/\//i.test(config.url ?? '')) throw new OrderFailure('names an address without https://')
  return Object.assign(config, order.getStore())
})

// In place of the package's own, which repeats requests, and loses the reason where there was no response: who ordered
// tries again, with pauses that grow.
interceptors.response.clear()
interceptors.response.use(null, (error: Error & { response?: Response; code?: string }) => {
  if (error.response !== undefined) return error.response
  throw error instanceof OrderFailure ? error : new Error(error.message || error.code)
})

export async function newKey(): Promise<string> {
  return String(await acme.crypto.createPrivateEcdsaKey())
}

/** The chain for a new key, in PEM form; whether it is the right one is not checked. @throws {OrderFailure} */
export async function orderCertificate(wanted: Order, key: string): Promise<string> {
  const httpsAgent = new Agent({ ca: wanted.ca, keepAlive: false })
  const { signal } = wanted
  try {
    return await order.run({ signal, httpsAgent }, () => new Ordering(wanted).run(key))
  } catch (error) {
    if (error instanceof OrderFailure) throw error
    throw new OrderFailure(reasonOf(error as Error, signal))
  } finally {
    httpsAgent.destroy()
  }
}

class Ordering {
  readonly #wanted: Order
  readonly #client: acme.Client

  constructor(wanted: Order) {
    this.#wanted = wanted
    const { directory: directoryUrl, accountKey } = wanted
    this.#client = new acme.Client({ directoryUrl, accountKey })
  }

  async run(key: string): Promise<string> {
    const { email, domains } = this.#wanted
    const client = this.#client
    await client.createAccount({
      termsOfServiceAgreed: true,
      ...(email !== undefined && { contact: [`mailto:${email}`] }),
    })
    const identifiers = domains.map(value => ({ type: 'dns', value }))
    const made = await client.createOrder({ identifiers })
    await this.#authorize(made)
    const ready = await this.#settled('order', () => client.getOrder(made), ['pending'])
    const [, csr] = await acme.crypto.createCsr({ altNames: [...domains] }, key)
    const final = ready.status === 'ready' ? await client.finalizeOrder(ready, csr) : ready
    const issued = await this.#settled('order', () => client.getOrder({ ...final, url: made.url }), [
      'processing',
      'ready',
      'pending',
    ])
    if (typeof issued.certificate !== 'string') throw nonsense()
    const chain: unknown = await client.getCertificate(issued)
    const found = typeof chain === 'string' ? certificatesOf(chain) : nonsense()
    if (!('certificates' in found)) throw nonsense()
    // Nothing but certificates: not what else was sent beside them.
    return found.certificates.join('')
  }

  async #authorize(made: acme.Order): Promise<void> {
    const { domains, challenges, kind } = this.#wanted
    const { authorizations } = made
    if (!Array.isArray(authorizations) || authorizations.length > domains.length) throw nonsense()
    const all = await this.#client.getAuthorizations(made)
    const published: string[] = []
    try {
      const pending = all.filter(({ status }) => status !== 'valid')
      const asked = pending.map(authorization => challengeOf(authorization, kind, domains))
      for (const { challenge, domain } of asked) {
        const [name, answer] = await this.#answer(challenge, domain)
        published.push(name)
        await challenges.publish(kind, name, answer)
      }
      for (const { challenge } of asked) await this.#client.completeChallenge(challenge)
      for (const authorization of pending) await this.#await(authorization)
    } finally {
      for (const name of published) await challenges.withdraw(kind, name)
    }
  }

  /** The name of a challenge, and what is to be found there. */
  async #answer(challenge: Challenge, domain: string): Promise<[name: string, answer: string]> {
    const authorization = await this.#client.getChallengeKeyAuthorization(challenge)
    if (challenge.type === 'http-01') return [challenge.token, authorization]
    const identifier = { type: 'dns', value: domain }
    const [key, cert] = await acme.crypto.createAlpnCertificate(
      { identifier } as acme.Authorization,
      authorization,
      await acme.crypto.createPrivateEcdsaKey(),
    )
    return [domain, `${cert}\n${key}`]
  }

  async #await(authorization: acme.Authorization): Promise<void> {
    const { kind } = this.#wanted
    const look = async () => {
      const [found] = await this.#client.getAuthorizations({
        authorizations: [authorization.url],
      } as acme.Order)
      return found as acme.Authorization
    }
    const { status, challenges } = await this.#settled('authorization', look, ['pending'])
    if (status === 'valid') return
    const failed = Array.isArray(challenges) ? challenges.find(({ type }) => type === kind) : undefined
    const why = (failed?.error as { detail?: unknown } | undefined)?.detail ?? status
    throw new OrderFailure(`did not accept ${kind} for ${authorization.identifier.value}: ${said(why)}`, {
      isChallenge: true,
    })
  }

  /** Looks until the status is no longer one of these, or the order takes too long. */
  async #settled<Found extends { status: string }>(
    what: string,
    look: () => Promise<Found>,
    unsettled: readonly string[],
  ): Promise<Found> {
    const { signal } = this.#wanted
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_LOOK_MS)) {
      const found = await look()
      if (typeof found?.status !== 'string') throw nonsense()
      if (what === 'order' && found.status === 'invalid') {
        const { error } = found as { error?: { detail?: unknown } }
        throw new OrderFailure(`refused the order: ${said(error?.detail ?? 'it is invalid')}`)
      }
      if (!unsettled.includes(found.status)) return found
      await sleep(pauseMs, undefined, { signal })
    }
  }
}

function challengeOf(authorization: acme.Authorization, kind: ChallengeKind, domains: readonly string[]) {
  const { identifier, challenges } = authorization
  const domain = String(identifier?.value)
  if (!domains.includes(domain) || !Array.isArray(challenges)) throw nonsense()
  const challenge = challenges.find(({ type }) => type === kind)
  if (challenge === undefined) {
    throw new OrderFailure(`offers no ${kind} for ${domain}`, { isChallenge: true })
  }
  if (typeof challenge.token !== 'string' || !TOKEN.test(challenge.token)) throw nonsense()
  return { challenge, domain }
}

function nonsense(): OrderFailure {
  return new OrderFailure('gives an answer that is none by RFC 8555')
}

/** The text of an authority, as part of a line of the log. */
function said(text: unknown): string {
  const plain = String(text).replace(/[^\x20-\x7e]+/g, ' ')
  return plain.length > MOST_SAID ? `${plain.slice(0, MOST_SAID)} …` : plain
}

function reasonOf(error: Error, signal: AbortSignal): string {
  if (signal.aborted) return 'takes too long'
  // What acme-client meets in an answer of another shape.
  if (error instanceof TypeError || error instanceof SyntaxError) return nonsense().message
  return `cannot be used: ${said(error.message)}`
}
