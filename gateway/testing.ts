/** The package's `./testing`: what a plugin's own tests need, made by the code that a gateway runs. */
import { type Static, type TSchema, Type } from 'typebox'
import { formatPath } from '../config/problem.js'
import { type Gateway, gatewaySchema } from '../config/schema.js'
import { createValidator } from '../config/validate.js'
import { MemoryStore } from './decide/store/memory.js'
import { TrustedProxies } from './listen/client.js'
import { createCredentials } from './listen/credentials.js'
import { readFacts } from './listen/facts.js'
import { requestOf } from './listen/written.js'
import type { Demand, Facts } from './types.js'

/** A request as a test writes it down. */
export interface WrittenRequest {
  /** Default GET. */
  readonly method?: string
  /** Path and query as a client sends them; default `/`. */
  readonly target?: string
  /** Default: Host `localhost`. */
  readonly headers?: Readonly<Record<string, string>>
  /** Address of the TCP peer; default 127.0.0.1. */
  readonly peer?: string
  /** `trustedProxies` of gateway.yaml; default none. */
  readonly trustedProxies?: readonly string[]
}

/** What a gateway with default settings knows of the request. Throws what its client would hear of a malformed one. */
export function factsOf(request: WrittenRequest = {}): Facts {
  const { method = 'GET', target = '/', headers = {}, peer = '127.0.0.1', trustedProxies = [] } = request
  const given = Object.entries(headers)
  const hasHost = given.some(([name]) => name.toLowerCase() === 'host')
  const fields = [...(hasHost ? [] : ['host', 'localhost']), ...given.flat()]
  const { fingerprintHeaders, credentials } = defaults()
  return readFacts(requestOf({ method, target, fields, peer }), {
    trusted: new TrustedProxies(trustedProxies),
    fingerprintHeaders,
    hasCredential: createCredentials(credentials),
  })
}

/**
 * The settings that a plugin's `create` or a rule's `config` would hold for what is `written` in YAML: checked, defaults
 * filled in, durations in milliseconds. Throws an Error with the sentences of `sluice check`.
 */
export function settingsOf<S extends TSchema>(plugin: { readonly schema: S }, written: object): Static<S> {
  const settings = structuredClone(written)
  const faults = createValidator(plugin.schema)(settings, () => [])
  if (faults.length === 0) return settings as Static<S>
  throw new Error(faults.map(({ path, message }) => `${formatPath(path)}: ${message}`).join('\n'))
}

/** Time that passes when a test says so. */
export class TestClock {
  #ms = 0

  /** Milliseconds since the start. */
  now(): number {
    return this.#ms
  }

  pass(ms: number): void {
    this.#ms += ms
  }
}

/** What the counters said to a demand. */
export interface Counted {
  readonly granted: boolean
  /** For each window of the demand, or for its slots or meter: what is left, and in how many ms more comes back. */
  readonly counts: readonly { readonly left: number | undefined; readonly resetMs: number }[]
  /** Gives a slot back; nothing for other demands. */
  release(): void
}

/** Counters in memory, as of a gateway without Redis. */
export class TestCounters {
  readonly #store: MemoryStore

  constructor(clock: TestClock) {
    this.#store = new MemoryStore(() => clock.now())
  }

  /** Charges the demand to `key`, or refuses it and charges nothing. */
  take(key: string, demand: Demand): Counted {
    const [answer] = this.#store.take([{ key, demand, group: 0, onStoreError: 'local' }])
    if (answer === undefined) throw new Error('the store did not answer')
    return {
      granted: answer.granted,
      counts: answer.counts.map(({ left, resetMs }) => ({ left, resetMs })),
      release: () => answer.release?.(),
    }
  }
}

function defaults(): Gateway {
  const settings = {
    version: 1,
    upstreams: { app: { url: 'http://127.0.0.1' } },
    routes: [{ path: '/**', upstream: 'app' }],
  }
  const some = { any: Type.Object({}) }
  createValidator(gatewaySchema({ identify: some, limit: some, observe: some }))(settings, () => [])
  return settings as unknown as Gateway
}
